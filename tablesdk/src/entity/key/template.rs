//! How a key is made of parts, and taken apart again.
//!
//! No two lists of values have one text: a part of fixed width has that width, and one of variable
//! width ends at the first separator behind it, which it does not contain.

#![expect(clippy::missing_errors_doc, reason = "called by generated code alone")]

use std::fmt;

use tablesdk_protocol::KeyKind;
use tablesdk_protocol::wire::json::{EntityCursor, JsonEntity};

use super::access::KeyAccess;
use crate::entity::reader::key_text;
use crate::entity::{EntityError, EntityProblem, PropertyReader, ValueError};

/// How one of the two keys of an entity is made: texts, and parts between them that are fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    part: KeyKind,
    text: &'static str,
    pieces: &'static [KeyPiece],
}

/// A piece of a [`KeyTemplate`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "made by generated code, and by it alone"
)]
pub enum KeyPiece {
    /// A text that is the same in all keys.
    Literal(&'static str),
    /// A field, and the width of its text, where it is fixed.
    Part(&'static str, Option<usize>),
}

impl KeyTemplate {
    /// A template, as it was written and in pieces.
    #[doc(hidden)]
    pub const fn new(part: KeyKind, text: &'static str, pieces: &'static [KeyPiece]) -> Self {
        Self { part, text, pieces }
    }

    /// The template as it was written, such as `empid_{id:06}`; a single field is `{id}`.
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// The text that every key begins with.
    pub const fn literal_prefix(&self) -> &'static str {
        match self.pieces {
            [KeyPiece::Literal(text), ..] => text,
            _ => "",
        }
    }

    /// Refuses at compile time a template of which two lists of values might make one key.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check(&self) {
        let mut pieces = self.pieces;
        while let [piece, rest @ ..] = pieces {
            if let (KeyPiece::Part(_, None), [KeyPiece::Part(..), ..]) = (piece, rest) {
                panic!(
                    "ambiguous key template: a part of variable width needs a separator after it, such as `{{a}}_{{b}}`"
                );
            }
            pieces = rest;
        }
    }

    /// Begins a key.
    #[doc(hidden)]
    pub const fn write(self) -> KeyWriter {
        KeyWriter {
            template: self,
            text: Ok(String::new()),
            next: 0,
        }
    }

    /// Takes a key of an answer apart.
    #[doc(hidden)]
    pub fn read<'a>(self, reader: &PropertyReader<'a, '_>) -> Result<KeyReader<'a>, EntityError> {
        Ok(KeyReader::new(self, reader.key(self.part)?))
    }
}

impl KeyTemplate {
    /// Reads one part of the key of an entity, whatever the others are.
    pub(crate) fn read_part<P>(
        self,
        entity: &JsonEntity<'_>,
        name: &str,
        access: KeyAccess<P>,
    ) -> Result<P, EntityError> {
        let mut reader = KeyReader::new(self, key_text(&EntityCursor::new(entity), self.part)?);
        loop {
            let (field, text) = reader.part_text()?;
            if field == name {
                return reader.value(field, text, access);
            }
        }
    }

    /// Reads the part of a key that has one alone.
    pub(crate) fn read_only_part<P>(
        self,
        entity: &JsonEntity<'_>,
        access: KeyAccess<P>,
    ) -> Result<P, EntityError> {
        KeyReader::new(self, key_text(&EntityCursor::new(entity), self.part)?).part(access)
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Makes a key from a template and its parts, given in their order. [`finish`](Self::finish)
/// returns the error of a part.
#[derive(Clone, Debug)]
pub struct KeyWriter {
    template: KeyTemplate,
    text: Result<String, EntityError>,
    /// Which piece comes next.
    next: usize,
}

impl KeyWriter {
    /// Writes the next part.
    #[must_use]
    pub fn part<P>(mut self, access: KeyAccess<P>, value: &P) -> Self {
        self.literal();
        let Some(KeyPiece::Part(field, width)) = self.template.pieces.get(self.next) else {
            return self;
        };
        self.next += 1;
        if let Ok(text) = &mut self.text {
            match part_text(access, value, *width, self.template.literal_at(self.next)) {
                Ok(part) if text.is_empty() => *text = part,
                Ok(part) => text.push_str(&part),
                Err(error) => {
                    self.text = Err(EntityProblem::KeyUnwritable {
                        part: self.template.part,
                        template: self.template.text,
                        field,
                        error,
                    }
                    .into());
                }
            }
        }
        self
    }

    /// The key.
    pub fn finish(mut self) -> Result<String, EntityError> {
        self.literal();
        self.text
    }

    /// Writes the literal that comes next, if one does.
    pub(super) fn literal(&mut self) {
        let literal = self.template.literal_at(self.next);
        if !literal.is_empty() {
            self.next += 1;
            if let Ok(text) = &mut self.text {
                text.push_str(literal);
            }
        }
    }

    /// The text of the pieces so far.
    pub(super) fn into_text(self) -> Result<String, EntityError> {
        self.text
    }

    /// Returns true if no piece is missing.
    pub(super) const fn is_complete(&self) -> bool {
        self.next >= self.template.pieces.len()
    }

    /// Returns true if the next piece is the last.
    pub(super) const fn is_at_last(&self) -> bool {
        self.next + 1 == self.template.pieces.len()
    }

    /// The part that comes next, a literal left out.
    pub(super) fn field(&self) -> &'static str {
        match self.template.pieces.get(self.next) {
            Some(KeyPiece::Part(field, _)) => field,
            _ => "",
        }
    }

    /// Returns true if the next part has a fixed width.
    pub(super) fn is_fixed(&self) -> bool {
        let piece = self.template.pieces.get(self.next);
        matches!(piece, Some(KeyPiece::Part(_, Some(_))))
    }

    pub(super) const fn template(&self) -> KeyTemplate {
        self.template
    }
}

impl KeyTemplate {
    pub(crate) const fn part(self) -> KeyKind {
        self.part
    }

    /// The fields that are parts of the key.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'static str> {
        self.pieces.iter().filter_map(|piece| match piece {
            KeyPiece::Part(field, _) => Some(*field),
            KeyPiece::Literal(_) => None,
        })
    }

    /// The literal in that place; nothing where there is none.
    fn literal_at(self, index: usize) -> &'static str {
        match self.pieces.get(index) {
            Some(KeyPiece::Literal(text)) => text,
            _ => "",
        }
    }
}

fn part_text<P>(
    access: KeyAccess<P>,
    value: &P,
    width: Option<usize>,
    separator: &str,
) -> Result<String, ValueError> {
    let text = access.text_before(value, separator)?;
    match width {
        Some(width) if width != text.encode_utf16().count() => {
            return Err(ValueError::unwritable(format_args!(
                "{text:?} is not {width} units wide, as its type has it"
            )));
        }
        Some(_) => return Ok(text),
        None => {}
    }
    // With the separator behind it, the first one must be that.
    if !separator.is_empty() && format!("{text}{separator}").find(separator) != Some(text.len()) {
        return Err(ValueError::unwritable(format_args!(
            "{text:?} contains the separator {separator:?} that ends it; in a template, `{{field:escaped}}` takes any string"
        )));
    }
    Ok(text)
}

/// Takes a key apart, part by part in their order.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    template: KeyTemplate,
    text: &'a str,
    rest: &'a str,
    next: usize,
}

impl<'a> KeyReader<'a> {
    const fn new(template: KeyTemplate, text: &'a str) -> Self {
        Self {
            template,
            text,
            rest: text,
            next: 0,
        }
    }

    /// Reads the next part.
    pub fn part<P>(&mut self, access: KeyAccess<P>) -> Result<P, EntityError> {
        let (field, text) = self.part_text()?;
        self.value(field, text, access)
    }

    fn value<P>(&self, field: &str, text: &str, access: KeyAccess<P>) -> Result<P, EntityError> {
        access
            .read(text)
            .map_err(|error| self.unreadable(format!("`{field}`: {error}")))
    }

    /// Ends the key: nothing may be left.
    pub fn end(mut self) -> Result<(), EntityError> {
        self.literal()?;
        match self.rest {
            "" => Ok(()),
            rest => Err(self.unreadable(format!("nothing goes with {rest:?} at its end"))),
        }
    }

    /// The next part, as its field and its text.
    fn part_text(&mut self) -> Result<(&'static str, &'a str), EntityError> {
        self.literal()?;
        let Some(KeyPiece::Part(field, width)) = self.template.pieces.get(self.next) else {
            return Err(self.unreadable("it has fewer parts".to_owned()));
        };
        self.next += 1;
        let separator = self.template.literal_at(self.next);
        let end = match width {
            Some(width) => end_of(self.rest, *width),
            None if separator.is_empty() => Some(self.rest.len()),
            None => self.rest.find(separator),
        };
        let Some((text, rest)) = end.and_then(|end| self.rest.split_at_checked(end)) else {
            return Err(self.unreadable(format!("it ends within `{field}`")));
        };
        self.rest = rest;
        Ok((field, text))
    }

    fn literal(&mut self) -> Result<(), EntityError> {
        let literal = self.template.literal_at(self.next);
        if literal.is_empty() {
            return Ok(());
        }
        self.next += 1;
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.unreadable(format!("{literal:?} is missing in it"))),
        }
    }

    fn unreadable(&self, reason: String) -> EntityError {
        EntityProblem::KeyUnreadable {
            part: self.template.part,
            text: self.text.to_owned(),
            template: self.template.text,
            reason,
        }
        .into()
    }
}

/// Where that many UTF-16 units end.
fn end_of(text: &str, units: usize) -> Option<usize> {
    let mut left = units;
    for (index, character) in text.char_indices() {
        if left == 0 {
            return Some(index);
        }
        left = left.checked_sub(character.len_utf16())?;
    }
    (left == 0).then_some(text.len())
}
