//! A simple model of the framer. The model reads the whole body at once, and may store all of it.

use streamweld_core::model::limits::Limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Frame {
        event: Vec<u8>,
        data: Vec<u8>,
        id: Vec<u8>,
        retry: Option<u64>,
        offset: u64,
        ordinal: u64,
    },
    Stray {
        data: Vec<u8>,
        offset: u64,
        ordinal: u64,
    },
    Fault {
        name: &'static str,
        limit: u64,
        observed: u64,
        offset: u64,
        ordinal: u64,
    },
    /// The result of `finish`, if there was no fault.
    End {
        open: bool,
        event: Vec<u8>,
        data: Option<(Vec<u8>, u64)>,
        stray: Option<(Vec<u8>, u64)>,
        ordinal: u64,
    },
}

/// Applies the framing rules line by line to the whole body.
pub(crate) struct Model {
    max_event: u64,
    max_field: u64,
    keep_stray: bool,
    seen: Vec<Seen>,
    ordinal: u64,
    last_id: Vec<u8>,
    block: Option<u64>,
    size: u64,
    data: Option<(Vec<u8>, u64)>,
    event: Vec<u8>,
    id: Option<Vec<u8>>,
    retry: Option<u64>,
    stray: Option<(Vec<u8>, u64)>,
    /// True if the stray text so far is one line, and the only data before it is an empty line.
    alone: bool,
    /// True if this block contained a stray line.
    strayed: bool,
}

/// Splits a value before a `data:` that is followed by the beginning of a JSON object or array.
fn joined_data(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    for at in 0..value.len() {
        let Some(data) = value[at..].strip_prefix(b"data:") else {
            continue;
        };
        let blanks = data.iter().take_while(blank).count();
        if matches!(data.get(blanks), Some(b'{' | b'[')) {
            let end = at - value[..at].iter().rev().take_while(blank).count();
            return (&value[..end], Some(data));
        }
    }
    (value, None)
}

impl Model {
    pub(crate) fn run(body: &[u8], limits: &Limits, keep_stray: bool) -> Vec<Seen> {
        let mut model = Model {
            max_event: limits.max_event_bytes.unwrap_or(u64::MAX),
            max_field: limits.max_field_bytes.unwrap_or(u64::MAX),
            keep_stray,
            seen: Vec::new(),
            ordinal: 0,
            last_id: Vec::new(),
            block: None,
            size: 0,
            data: None,
            event: Vec::new(),
            id: None,
            retry: None,
            stray: None,
            alone: false,
            strayed: false,
        };
        match model.lines(body) {
            Ok(()) => model.seen,
            Err(fault) => {
                model.seen.push(fault);
                model.seen
            }
        }
    }

    fn lines(&mut self, body: &[u8]) -> Result<(), Seen> {
        let mut at = if body.starts_with(b"\xEF\xBB\xBF") {
            3
        } else {
            0
        };
        loop {
            let rest = &body[at..];
            match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(0) => self.blank(),
                Some(end) => self.line(&rest[..end], at as u64, true)?,
                None => {
                    self.line(rest, at as u64, false)?;
                    break;
                }
            }
            let end = rest
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'))
                .unwrap();
            at += end
                + if rest[end..].starts_with(b"\r\n") {
                    2
                } else {
                    1
                };
        }
        Ok(())
    }

    fn fault(&self, name: &'static str, limit: u64, at: u64) -> Seen {
        let offset = self.block.unwrap_or(at);
        Seen::Fault {
            name,
            limit,
            observed: limit + 1,
            offset,
            ordinal: self.ordinal,
        }
    }

    fn line(&mut self, line: &[u8], at: u64, whole: bool) -> Result<(), Seen> {
        let names = ["data", "event", "id", "retry"];
        let colon = line.iter().position(|byte| *byte == b':');
        let name = &line[..colon.unwrap_or(line.len())];
        let known = names.iter().find(|known| known.as_bytes() == name);
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let mut open = self.block.is_some();
        let (own, joined) = match known {
            Some(&name) if whole && self.keep_stray && name != "data" => joined_data(value),
            _ => (value, None),
        };
        match known {
            Some(known) if whole || colon.is_some() => {
                self.block.get_or_insert(at);
                open = true;
                match *known {
                    "data" => {
                        self.grow(value, whole, at)?;
                        match &mut self.data {
                            Some((data, _)) => {
                                data.push(b'\n');
                                data.extend_from_slice(value);
                            }
                            none => *none = Some((value.to_vec(), at)),
                        }
                    }
                    "event" | "id" => {
                        if value.len() as u64 > self.max_field {
                            return Err(self.fault("max_field_bytes", self.max_field, at));
                        }
                        if whole && *known == "event" {
                            self.event = own.to_vec();
                        } else if whole && !own.contains(&0) {
                            self.id = Some(own.to_vec());
                        }
                        if let Some(data) = joined {
                            self.line(&[b"data:", data].concat(), at, true)?;
                        }
                    }
                    _ => {
                        let count = value.iter().take_while(|byte| byte.is_ascii_digit());
                        let others = &value[count.count()..];
                        let blanks = others.iter().take_while(|b| matches!(b, b' ' | b'\t'));
                        let blanks = blanks.count();
                        // Only the first blank before the data line counts toward the limit.
                        let size = others.len() - blanks + blanks.min(1);
                        let others = &others[blanks..];
                        let fits = size as u64 <= self.max_field;
                        let splits = fits && others.starts_with(b"data:");
                        let (own, joined) = if splits { (own, joined) } else { (value, None) };
                        let digits = std::str::from_utf8(own)
                            .ok()
                            .filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
                        let time = digits
                            .and_then(|v| v.parse::<u64>().ok())
                            .filter(|v| *v <= i64::MAX as u64);
                        if whole && time.is_some() {
                            self.retry = time;
                        }
                        if let Some(data) = joined {
                            self.line(&[b"data:", data].concat(), at, true)?;
                        }
                    }
                }
            }
            // If more bytes arrived, the unterminated line could become a field.
            _ if !whole
                && !line.is_empty()
                && names.iter().any(|known| known.as_bytes().starts_with(line)) =>
            {
                open = true
            }
            _ if self.keep_stray && !line.is_empty() && line[0] != b':' => {
                let blanks = line
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
                let begins = matches!(line.get(blanks), Some(b'{' | b'[' | b'<'));
                if begins || self.stray.is_some() {
                    self.block.get_or_insert(at);
                    open = true;
                    self.grow(line, whole, at)?;
                    match &mut self.stray {
                        Some((stray, _)) => {
                            self.alone = false;
                            stray.push(b'\n');
                            stray.extend_from_slice(line);
                        }
                        none => {
                            self.alone = self.data.as_ref().is_none_or(|(data, _)| data.is_empty());
                            self.strayed = true;
                            *none = Some((line.to_vec(), at));
                        }
                    }
                    if whole && self.alone && matches!(line.last(), Some(b'}' | b']')) {
                        self.give_stray();
                        self.size -= line.len() as u64 + 1;
                        if self.block == Some(at) {
                            self.block = None;
                        }
                    }
                }
            }
            _ => {}
        }
        if !whole {
            let (data, stray) = (self.data.clone(), self.stray.clone());
            self.seen.push(Seen::End {
                open,
                event: self.event.clone(),
                data,
                stray,
                ordinal: self.ordinal,
            });
        }
        Ok(())
    }

    fn grow(&mut self, value: &[u8], whole: bool, at: u64) -> Result<(), Seen> {
        self.size += value.len() as u64 + u64::from(whole);
        if self.size > self.max_event {
            return Err(self.fault("max_event_bytes", self.max_event, at));
        }
        Ok(())
    }

    fn give_stray(&mut self) {
        if let Some((data, offset)) = self.stray.take() {
            self.seen.push(Seen::Stray {
                data,
                offset,
                ordinal: self.ordinal,
            });
            self.ordinal += 1;
        }
    }

    fn blank(&mut self) {
        if let Some(id) = self.id.take() {
            self.last_id = id;
        }
        // Payloads of one block come in the order in which they began.
        if let (Some((_, stray)), Some((_, data))) = (&self.stray, &self.data)
            && stray < data
        {
            self.give_stray();
        }
        if let Some((data, offset)) = self.data.take() {
            if !self.strayed || !data.is_empty() {
                let event = self.event.clone();
                let (id, retry, ordinal) = (self.last_id.clone(), self.retry, self.ordinal);
                self.seen.push(Seen::Frame {
                    event,
                    data,
                    id,
                    retry,
                    offset,
                    ordinal,
                });
                self.ordinal += 1;
            }
        }
        self.give_stray();
        self.strayed = false;
        self.event.clear();
        self.retry = None;
        self.size = 0;
        self.block = None;
    }
}
