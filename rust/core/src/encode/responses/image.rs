//! Writes the images of other dialects as the items that OpenAI sends for generated images.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::writer::Writer;
use crate::encode::responses::items::Items;

/// Media types of the images that OpenAI generates, and their names in an item.
const FORMATS: [(&str, &str); 3] = [
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/webp", "webp"),
];

/// Returns the name of an image format, or `None` if OpenAI does not generate images of this type.
pub(crate) fn output_format(media_type: Option<&str>) -> Option<&'static str> {
    let media_type = media_type?.split(';').next()?.trim();
    let mut formats = FORMATS.iter();
    let format = formats.find(|(known, _)| media_type.eq_ignore_ascii_case(known));
    format.map(|(_, name)| *name)
}

impl Items {
    /// Writes all events of an image. `data` is the image as base64.
    pub(crate) fn write_image(&mut self, context: &mut EncodeContext, data: &str, format: &str) {
        let index = self.take_index(context, None);
        let id = context.mint.make("ig");
        let mut item = Writer::default();
        item.raw("{\"type\":\"image_generation_call\",\"id\":")
            .string(&id)
            .raw(",\"status\":\"in_progress\",\"result\":null}");
        self.open_hosted(context, index, &item.into_text());
        for kind in [
            "response.image_generation_call.in_progress",
            "response.image_generation_call.generating",
            "response.image_generation_call.completed",
        ] {
            self.report_progress(context, kind, (&id, index));
        }
        let mut item = Writer::default();
        item.raw("{\"type\":\"image_generation_call\",\"id\":")
            .string(&id)
            .raw(",\"status\":\"completed\",\"result\":")
            .string(data)
            .raw(",\"output_format\":")
            .string(format)
            .raw("}");
        self.finish_hosted(context, index, item.into_text());
    }
}

#[cfg(test)]
mod tests {
    use super::output_format;

    #[test]
    fn formats() {
        for (media_type, format) in [
            (Some("image/png"), Some("png")),
            (Some("IMAGE/JPEG ; q=1"), Some("jpeg")),
            (Some("image/gif"), None),
            (None, None),
        ] {
            assert_eq!(output_format(media_type), format);
        }
    }
}
