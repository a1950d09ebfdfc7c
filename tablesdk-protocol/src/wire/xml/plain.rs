//! The first pass over a document: bounds and simplifies it, without recursion.
//!
//! Namespaces, attributes, comments and processing instructions are left out. Documents of the
//! service are a few hundred bytes and five levels deep; anything far beyond that is refused.

use quick_xml::events::{BytesRef, Event};
use quick_xml::{Reader, XmlVersion, escape};

use super::XmlError;
use crate::types::limits::XML_BYTES_MAX;

/// Reads a document, with or without a byte order mark. Returns the name of its root element, and
/// the document with only elements and text.
pub(in crate::wire) fn plain(document: &[u8]) -> Result<(String, String), XmlError> {
    if document.len() > XML_BYTES_MAX {
        return Err(XmlError::Malformed);
    }
    let text = std::str::from_utf8(document).map_err(|_| XmlError::Malformed)?;
    let mut reader = Reader::from_str(text.strip_prefix('\u{FEFF}').unwrap_or(text));
    reader.config_mut().expand_empty_elements = true;
    let mut root = None;
    let mut plain = String::new();
    let mut depth = 0;
    loop {
        match reader.read_event().map_err(|_| XmlError::Malformed)? {
            Event::Start(start) => {
                let name = start.local_name();
                if depth == DEPTH_MAX || depth == 0 && root.is_some() {
                    return Err(XmlError::Malformed);
                }
                root.get_or_insert_with(|| name.as_ref().to_owned());
                plain.extend(["<", name.as_ref(), ">"]);
                depth += 1;
            }
            Event::End(end) => {
                plain.extend(["</", end.local_name().as_ref(), ">"]);
                depth -= 1;
            }
            Event::Text(text) => {
                add_text(
                    &mut plain,
                    depth,
                    &text.xml_content(XmlVersion::Implicit1_0),
                )?;
            }
            Event::CData(text) => {
                add_text(
                    &mut plain,
                    depth,
                    &text.xml_content(XmlVersion::Implicit1_0),
                )?;
            }
            Event::GeneralRef(reference) => {
                let character = resolve(&reference)?;
                add_text(&mut plain, depth, character.encode_utf8(&mut [0; 4]))?;
            }
            // A document type can define entities, which are not supported.
            Event::DocType(_) => return Err(XmlError::Malformed),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    match root {
        Some(root) if depth == 0 => Ok((root, plain)),
        _ => Err(XmlError::Malformed),
    }
}

fn add_text(plain: &mut String, depth: usize, text: &str) -> Result<(), XmlError> {
    let is_control = |c: char| c.is_control() && !c.is_whitespace();
    if text.contains(is_control) || depth == 0 && !text.trim().is_empty() {
        return Err(XmlError::Malformed);
    }
    if depth > 0 {
        // `\r` is escaped, so that the second pass does not take it for a line end.
        plain.push_str(&escape::partial_escape(text).replace('\r', "&#13;"));
    }
    Ok(())
}

/// A character by its number, or one of the five that every document may name.
fn resolve(reference: &BytesRef<'_>) -> Result<char, XmlError> {
    let number = reference.resolve_char_ref();
    if let Some(character) = number.map_err(|_| XmlError::Malformed)? {
        return Ok(character);
    }
    match &*reference.xml_content(XmlVersion::Implicit1_0) {
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "gt" => Ok('>'),
        "lt" => Ok('<'),
        "quot" => Ok('"'),
        _ => Err(XmlError::Malformed),
    }
}

const DEPTH_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_elements_and_text_remain() {
        let document = "\u{FEFF}<?xml version='1.0'?>\n<!-- c --><a:b x='1'>\n<c>x &amp;&#x41;<![CDATA[<&>]]>\r\ny</c><d/>\n</a:b>\n";
        let (root, plain) = plain(document.as_bytes()).unwrap();
        assert_eq!(root, "b");
        assert_eq!(plain, "<b>\n<c>x &amp;A&lt;&amp;&gt;\ny</c><d></d>\n</b>");
    }

    #[test]
    fn malformed_documents_are_refused() {
        let deep = "<a>".repeat(9) + &"</a>".repeat(9);
        let large = format!("<a>{}</a>", " ".repeat(XML_BYTES_MAX));
        for document in [
            "",
            " ",
            "text",
            "<a>",
            "</a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>text",
            "text<a/>",
            "<a>&b;</a>",
            "<a>&#0;</a>",
            "<a>&#xFFFFFFFFFF;</a>",
            "<a>&</a>",
            "<a>\u{1}</a>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            "<!DOCTYPE a><a/>",
            &deep,
            &large,
        ] {
            let start: String = document.chars().take(40).collect();
            assert_eq!(
                plain(document.as_bytes()),
                Err(XmlError::Malformed),
                "{start}"
            );
        }
        assert!(plain(b"<a>\xFF</a>").is_err());
        assert!(plain(("<a>".repeat(8) + &"</a>".repeat(8)).as_bytes()).is_ok());
    }

    #[test]
    fn attributes_and_comments_take_no_memory() {
        let attributes: Vec<_> = (0..4_000).map(|index| format!("a{index}='x'")).collect();
        let attributes = attributes.join(" ");
        let comments = "<!-- x --><?x y?>".repeat(3_000);
        let document = format!("<a {attributes}/>");
        assert_eq!(plain(document.as_bytes()), plain(b"<a/>"));
        let document = format!("<a>{comments}</a>");
        assert_eq!(plain(document.as_bytes()), plain(b"<a/>"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = plain(&bytes);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(<|</|/>|>|a|b:c| x='|'|\"|&|#|;|amp|<!--|-->|<!\\[CDATA\\[|\\]\\]>|<\\?|\\?>|<!DOCTYPE|\\n){0,30}") {
            let _ = plain(text.as_bytes());
        }
    }
}
