//! Key templates as they are written: `empid_{id:06}`, strings and fields in braces.
//!
//! This file knows only names and digits. The compiler checks the types of the fields in generated
//! code.

use proc_macro2::Span;
use syn::LitStr;

use crate::diagnostics::{Diagnostics, closest};
use crate::input::InputField;

/// How a key is made.
pub(crate) struct Template {
    /// As it was written. For a key of one field, `{field}`.
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) pieces: Vec<Piece>,
}

pub(crate) enum Piece {
    Literal(String),
    /// The index of a field in the struct, and the form in which the key holds its value.
    Part {
        field: usize,
        form: PartForm,
    },
}

/// The form of a value in a key: what is behind the colon of `{field:06}`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartForm {
    /// The form of the field's type.
    Plain,
    /// Padded with zeros to a number of digits.
    Digits(usize),
    /// The greatest value first.
    Desc,
    /// With an escape for what a key cannot contain.
    Escaped,
}

impl Template {
    /// The template of a key that is one field.
    pub(crate) fn of_field(index: usize, field: &InputField<'_>) -> Self {
        Self {
            text: format!("{{{}}}", field.plain_name()),
            span: field.ident.span(),
            pieces: vec![Piece::Part {
                field: index,
                form: PartForm::Plain,
            }],
        }
    }

    /// Reads a template. Mistakes are reported; the valid pieces are returned.
    pub(crate) fn parse(
        literal: &LitStr,
        fields: &[InputField<'_>],
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let (text, span) = (literal.value(), literal.span());
        let mut pieces: Vec<Piece> = Vec::new();
        for token in tokens(&text) {
            let found = token.and_then(|token| match token {
                Token::Literal(text) => Ok(Piece::Literal(text)),
                Token::Part { name, form } => {
                    let field = field_of(&name, fields)?;
                    let twice = pieces.iter().any(
                        |piece| matches!(piece, Piece::Part { field: known, .. } if *known == field),
                    );
                    if twice {
                        return Err(format!("`{name}` is in the template twice: remove one of the two"));
                    }
                    Ok(Piece::Part { field, form })
                }
            });
            match found {
                Ok(piece) => pieces.push(piece),
                Err(message) => diagnostics.error(span, message),
            }
        }
        check_literals(&pieces, span, diagnostics);
        Self { text, span, pieces }
    }

    /// The indices of the fields, in the order of the template.
    pub(crate) fn fields(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Part { field, .. } => Some(*field),
        })
    }

    /// The form of a part, if it is the whole key.
    pub(crate) fn only_part(&self) -> Option<PartForm> {
        match self.pieces.as_slice() {
            [Piece::Part { form, .. }] => Some(*form),
            _ => None,
        }
    }

    /// The string in front of the first part; empty where there is none.
    pub(crate) fn literal_prefix(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// Returns true if two parts follow each other without a string between them.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.pieces
            .iter()
            .zip(self.pieces.iter().skip(1))
            .any(|pair| matches!(pair, (Piece::Part { .. }, Piece::Part { .. })))
    }
}

/// The names in the valid pieces of a template.
pub(crate) fn names(text: &str) -> impl Iterator<Item = String> {
    tokens(text).into_iter().filter_map(|token| match token {
        Ok(Token::Part { name, .. }) => Some(name),
        _ => None,
    })
}

enum Token {
    Literal(String),
    Part { name: String, form: PartForm },
}

/// The pieces of the template, or a message for each that is malformed.
fn tokens(text: &str) -> Vec<Result<Token, String>> {
    let mut tokens = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        if let ('{' | '}', true) = (character, after.starts_with(character)) {
            literal.push(character);
            rest = after.get(1..).unwrap_or_default();
        } else if character == '{' {
            if !literal.is_empty() {
                tokens.push(Ok(Token::Literal(std::mem::take(&mut literal))));
            }
            let Some((inside, behind)) = after.split_once('}') else {
                tokens.push(Err(
                    "a brace is opened but not closed: write `{field}`, or `{{` for a brace in the key"
                        .to_owned(),
                ));
                return tokens;
            };
            tokens.push(part(inside));
            rest = behind;
        } else if character == '}' {
            tokens.push(Err(
                "a brace is closed but not opened: write `}}` for a brace in the key".to_owned(),
            ));
            rest = after;
        } else {
            literal.push(character);
            rest = after;
        }
    }
    if !literal.is_empty() {
        tokens.push(Ok(Token::Literal(literal)));
    }
    tokens
}

/// The part between two braces.
fn part(inside: &str) -> Result<Token, String> {
    let (name, format) = match inside.split_once(':') {
        Some((name, format)) => (name.trim(), Some(format.trim())),
        None => (inside.trim(), None),
    };
    if name.is_empty() {
        return Err("braces without a field: write `{field}`".to_owned());
    }
    let form = match format {
        None => PartForm::Plain,
        Some("desc") => PartForm::Desc,
        Some("escaped") => PartForm::Escaped,
        Some(format) => {
            let digits = format
                .strip_prefix('0')
                .and_then(|digits| digits.parse().ok());
            match digits {
                Some(digits @ 1..=DIGITS_MAX) => PartForm::Digits(digits),
                _ => return Err(unknown_form(name, format)),
            }
        }
    };
    let name = name.to_owned();
    Ok(Token::Part { name, form })
}

fn unknown_form(name: &str, format: &str) -> String {
    if let Some(known) = closest(format, &["desc", "escaped"]) {
        return format!("unknown form `{format}`, did you mean `{{{name}:{known}}}`?");
    }
    format!(
        "`{format}` is not a form of a part: write `{{{name}:06}}` for 6 digits with leading zeros ({DIGITS_MAX} at most), `{{{name}:desc}}` for the greatest first, or `{{{name}:escaped}}` for any string"
    )
}

fn field_of(name: &str, fields: &[InputField<'_>]) -> Result<usize, String> {
    let found = fields.iter().position(|field| field.plain_name() == name);
    found.ok_or_else(|| {
        let names: Vec<_> = fields.iter().map(InputField::plain_name).collect();
        format!(
            "there is no field `{name}`: the fields of the struct are `{}`",
            names.join("`, `")
        )
    })
}

fn check_literals(pieces: &[Piece], span: Span, diagnostics: &mut Diagnostics) {
    for piece in pieces {
        let Piece::Literal(text) = piece else {
            continue;
        };
        let forbidden = |c: char| matches!(c, '/' | '\\' | '#' | '?') || c.is_control();
        if let Some(character) = text.chars().find(|c| forbidden(*c)) {
            diagnostics.error(
                span,
                format!(
                    "the character {character:?} is forbidden in keys, like / \\ # ? and control characters: choose another separator"
                ),
            );
        }
    }
}

/// The digits of the greatest number.
const DIGITS_MAX: usize = 20;
