//! A document as a small tree of elements, read without recursion.
//!
//! Namespaces, attributes, comments and processing instructions are passed over. Documents of the service are a few
//! hundred bytes and five levels deep; what goes far beyond that is refused.

use quick_xml::events::{BytesRef, Event};
use quick_xml::{Reader, XmlVersion};

use super::XmlError;
use crate::limits::XML_BYTES_MAX;

/// An element that has either children or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::wire) struct Element {
    /// Without the prefix.
    pub(in crate::wire) name: String,
    text: String,
    children: Vec<Self>,
}

impl Element {
    /// Reads a document, a byte order mark in front of it included.
    pub(in crate::wire) fn parse(document: &[u8]) -> Result<Self, XmlError> {
        if document.len() > XML_BYTES_MAX {
            return Err(XmlError::Malformed);
        }
        let text = std::str::from_utf8(document).map_err(|_| XmlError::Malformed)?;
        let mut reader = Reader::from_str(text.strip_prefix('\u{FEFF}').unwrap_or(text));
        let mut open: Vec<Self> = Vec::new();
        let mut root = None;
        loop {
            match reader.read_event().map_err(|_| XmlError::Malformed)? {
                Event::Start(start) => {
                    if root.is_some() || open.len() == DEPTH_MAX {
                        return Err(XmlError::Malformed);
                    }
                    open.push(Self::new(start.local_name().as_ref()));
                }
                Event::Empty(start) => {
                    let element = Self::new(start.local_name().as_ref());
                    close(element, &mut open, &mut root)?;
                }
                Event::End(_) => {
                    let element = open.pop().ok_or(XmlError::Malformed)?;
                    close(element, &mut open, &mut root)?;
                }
                Event::Text(text) => {
                    add_text(&mut open, &text.xml_content(XmlVersion::Implicit1_0))?;
                }
                Event::CData(text) => {
                    add_text(&mut open, &text.xml_content(XmlVersion::Implicit1_0))?;
                }
                Event::GeneralRef(reference) => {
                    let character = resolve(&reference)?;
                    add_text(&mut open, character.encode_utf8(&mut [0; 4]))?;
                }
                // A document type can define entities, which have no place here.
                Event::DocType(_) => return Err(XmlError::Malformed),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof => break,
            }
        }
        root.filter(|_| open.is_empty()).ok_or(XmlError::Malformed)
    }

    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Requires this name.
    pub(super) fn named(self, name: &str) -> Result<Self, XmlError> {
        if self.name == name {
            Ok(self)
        } else {
            Err(XmlError::Unexpected { name: self.name })
        }
    }

    /// The elements in it, each of which has one of the names and comes once.
    pub(super) fn fields(self, names: &[&str]) -> Result<Vec<Self>, XmlError> {
        for (index, child) in self.children.iter().enumerate() {
            let before = self.children.iter().take(index);
            let is_repeated = before.into_iter().any(|other| other.name == child.name);
            if is_repeated || !names.contains(&child.name.as_str()) {
                let name = child.name.clone();
                return Err(XmlError::Unexpected { name });
            }
        }
        self.into_children()
    }

    /// The elements in it, all of which have that name.
    pub(super) fn list(self, name: &str) -> Result<Vec<Self>, XmlError> {
        let children = self.into_children()?;
        children
            .into_iter()
            .map(|child| child.named(name))
            .collect()
    }

    fn into_children(self) -> Result<Vec<Self>, XmlError> {
        if self.text.trim().is_empty() {
            Ok(self.children)
        } else {
            Err(XmlError::Value { name: self.name })
        }
    }

    /// The element of that name in it, in any case.
    pub(in crate::wire) fn child(&self, name: &str) -> Option<&Self> {
        let mut children = self.children.iter();
        children.find(|child| child.name.eq_ignore_ascii_case(name))
    }

    /// The text as it stands.
    pub(in crate::wire) fn text(&self) -> &str {
        &self.text
    }

    /// The text of an element without elements in it.
    pub(super) fn value(&self) -> Result<&str, XmlError> {
        if self.children.is_empty() {
            Ok(&self.text)
        } else {
            Err(self.invalid())
        }
    }

    /// The value, read by that function.
    pub(super) fn parse_value<T>(
        &self,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, XmlError> {
        read(self.value()?.trim()).ok_or_else(|| self.invalid())
    }

    pub(super) fn invalid(&self) -> XmlError {
        XmlError::Value {
            name: self.name.clone(),
        }
    }
}

/// Takes the field of that name out of the list.
pub(super) fn take(fields: &mut Vec<Element>, name: &str) -> Option<Element> {
    let index = fields.iter().position(|field| field.name == name)?;
    Some(fields.swap_remove(index))
}

/// Takes the field of that name, which must be there, out of the list.
pub(super) fn require(fields: &mut Vec<Element>, name: &'static str) -> Result<Element, XmlError> {
    take(fields, name).ok_or(XmlError::Missing { name })
}

fn close(
    element: Element,
    open: &mut [Element],
    root: &mut Option<Element>,
) -> Result<(), XmlError> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => return Err(XmlError::Malformed),
    }
    Ok(())
}

fn add_text(open: &mut [Element], text: &str) -> Result<(), XmlError> {
    let is_control = |c: char| c.is_control() && !c.is_whitespace();
    if text.contains(is_control) {
        return Err(XmlError::Malformed);
    }
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(XmlError::Malformed),
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
    fn texts_are_put_together_from_their_parts() {
        let document = "\u{FEFF}<?xml version='1.0'?>\n<!-- c --><a:b x='1'>\n<c>x &amp;&#x41;<![CDATA[<&>]]>\r\ny</c><d/>\n</a:b>\n";
        let root = Element::parse(document.as_bytes()).unwrap();
        assert_eq!(root.name, "b");
        assert_eq!(root.child("C").unwrap().text(), "x &A<&>\ny");
        assert_eq!(root.child("d").unwrap().text(), "");
        assert_eq!(root.child("e"), None);
    }

    #[test]
    fn what_is_no_plain_document_is_refused() {
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
                Element::parse(document.as_bytes()),
                Err(XmlError::Malformed),
                "{start}"
            );
        }
        assert!(Element::parse(b"<a>\xFF</a>").is_err());
        assert!(Element::parse(("<a>".repeat(8) + &"</a>".repeat(8)).as_bytes()).is_ok());
    }

    #[test]
    fn what_is_passed_over_takes_no_room() {
        let attributes: Vec<_> = (0..4_000).map(|index| format!("a{index}='x'")).collect();
        let attributes = attributes.join(" ");
        let comments = "<!-- x --><?x y?>".repeat(3_000);
        let document = format!("<a {attributes}/>");
        assert_eq!(Element::parse(document.as_bytes()), Element::parse(b"<a/>"));
        let document = format!("<a>{comments}</a>");
        assert_eq!(Element::parse(document.as_bytes()), Element::parse(b"<a/>"));
        // As many elements as fit, of which the first that does not belong there ends it.
        let siblings = format!("<a>{}</a>", "<b/>".repeat(XML_BYTES_MAX / 4 - 2));
        let root = Element::parse(siblings.as_bytes()).unwrap();
        let refused = root.fields(&["b", "c"]);
        let name = "b".to_owned();
        assert_eq!(refused, Err(XmlError::Unexpected { name }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = Element::parse(&bytes);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(<|</|/>|>|a|b:c| x='|'|\"|&|#|;|amp|<!--|-->|<!\\[CDATA\\[|\\]\\]>|<\\?|\\?>|<!DOCTYPE|\\n){0,30}") {
            let _ = Element::parse(text.as_bytes());
        }
    }
}
