//! Prints elements without white space between them, as the service does.

/// A document that is being written.
pub(in crate::wire) struct Writer(String);

impl Writer {
    /// Starts a document.
    pub(in crate::wire) fn new() -> Self {
        Self(r#"<?xml version="1.0" encoding="utf-8"?>"#.to_owned())
    }

    /// Starts a document with a byte order mark.
    // SERVICE: its answers of success have one, its errors have none, and clients need not send one.
    pub(in crate::wire) fn with_byte_order_mark() -> Self {
        Self(format!("\u{FEFF}{}", Self::new().0))
    }

    /// An element with what that function writes in it; a bare tag where that is nothing. `attributes` start with a space.
    pub(in crate::wire) fn element(
        &mut self,
        name: &str,
        attributes: &str,
        content: impl FnOnce(&mut Self),
    ) {
        self.0.extend(["<", name, attributes, ">"]);
        let start = self.0.len();
        content(self);
        if self.0.len() == start {
            self.0.truncate(start - 1);
            self.0.push_str(" />");
        } else {
            self.0.extend(["</", name, ">"]);
        }
    }

    /// An element of elements.
    pub(super) fn group(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        self.element(name, "", content);
    }

    /// An element of text.
    pub(super) fn value(&mut self, name: &str, text: &str) {
        self.element(name, "", |out| out.text(text));
    }

    /// A text.
    pub(in crate::wire) fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '\r' => self.0.push_str("&#xD;"),
                _ => self.0.push(character),
            }
        }
    }

    /// The document.
    pub(in crate::wire) fn end(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::xml::Element;

    proptest! {
        #[test]
        fn a_text_reads_back(text in "[^\\p{Cc}\u{FFFE}\u{FFFF}]{0,40}") {
            let mut out = Writer::with_byte_order_mark();
            out.value("a", &text);
            let document = out.end();
            let element = Element::parse(&document).unwrap();
            prop_assert_eq!(element.text(), text);
        }
    }
}
