//! Adds the member `object` to a Chat chunk whose bytes otherwise pass through unchanged.

const MEMBER: &[u8] = b"\"object\":\"chat.completion.chunk\",";
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Inserts the member after the opening brace of the block's payload, which must be an object with other members.
pub(crate) fn put_chunk_type(block: &mut Vec<u8>) {
    let mut start = 0;
    for line in block.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
        let field = line.strip_prefix(BOM).unwrap_or(line);
        let brace = line.iter().position(|byte| *byte == b'{');
        if let Some(at) = brace.filter(|_| field.starts_with(b"data")) {
            let at = start + at + 1;
            block.splice(at..at, MEMBER.iter().copied());
            return;
        }
        start += line.len();
    }
}
