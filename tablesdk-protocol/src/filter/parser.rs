//! Parses the string of a filter: each token once, in time linear in its length, on a stack of its
//! own.
//!
//! A parenthesis opens either a group or an operand. What it holds is a [`Term`], and what follows
//! it decides: going back would cost time exponential in the depth. What waits for a right side or
//! a closing parenthesis lies on a stack of [`Open`]s, so that the depth of a string is bounded by
//! its length alone. Parentheses leave no trace in the tree, nor do chains of one operator however
//! they are grouped.
//!
//! ```text
//! or         = and *( "or" and )
//! and        = unary *( "and" unary )
//! unary      = "not" unary / comparison
//! comparison = operand [ operator operand ]
//! operand    = property / literal / "(" or ")"
//! ```

use std::collections::VecDeque;
use std::mem;
use std::str::FromStr;

use super::lexer::{Lexer, Token, TokenKind};
use super::{
    ComparisonOperator, Filter, FilterSyntax, Operand, ParseFilterError, PropertyComparison,
};
use crate::types::Value;
use crate::types::limits::FILTER_BYTES_MAX;

impl Filter {
    /// Reads a filter of at most [`FILTER_BYTES_MAX`] bytes. A blank string matches every entity.
    ///
    /// A literal on the left changes sides: `5 lt Age` reads as `Age gt 5`.
    ///
    /// # Errors
    ///
    /// When the string is not a filter of that syntax.
    pub fn read(text: &str, syntax: FilterSyntax) -> Result<Self, ParseFilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(ParseFilterError::too_long());
        }
        let mut lexer = Lexer::new(text, syntax);
        let token = lexer.token()?;
        let parser = Parser {
            lexer,
            syntax,
            token,
            open: Vec::new(),
        };
        match parser.token.kind {
            TokenKind::End => Ok(Self::Constant(true)),
            _ => parser.filter(),
        }
    }
}

/// As [`Filter::read`] with [`FilterSyntax::Repaired`].
impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::read(text, FilterSyntax::Repaired)
    }
}

/// A parsed term whose use is not known yet.
enum Term {
    All(VecDeque<Filter>),
    Any(VecDeque<Filter>),
    Condition(Filter),
    Literal(Value),
    Null,
    /// A name, and where it starts.
    Property(String, usize),
}

/// An expression that was begun and waits for a term.
enum Open {
    /// The terms in front of an `and`.
    And(VecDeque<Filter>),
    /// The left side, and where it starts.
    Comparison(Term, ComparisonOperator, usize),
    /// A parenthesis, and where it stands.
    Group(usize),
    Not,
    /// The terms in front of an `or`.
    Or(VecDeque<Filter>),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    syntax: FilterSyntax,
    /// The next token, read but not used.
    token: Token<'a>,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn filter(mut self) -> Result<Filter, ParseFilterError> {
        loop {
            let (term, start) = self.operand()?;
            if let Some(filter) = self.operators(term, start)? {
                return Ok(filter);
            }
        }
    }

    /// Goes to the next property or literal. Says where it starts.
    fn operand(&mut self) -> Result<(Term, usize), ParseFilterError> {
        loop {
            let Token { start, end, .. } = self.token;
            match mem::replace(&mut self.token.kind, TokenKind::End) {
                TokenKind::Literal(value) => {
                    self.advance()?;
                    return Ok((Term::Literal(value), start));
                }
                TokenKind::Not if !matches!(self.open.last(), Some(Open::Comparison(..))) => {
                    self.advance()?;
                    self.open.push(Open::Not);
                }
                TokenKind::Null if self.syntax == FilterSyntax::Azurite => {
                    self.advance()?;
                    return Ok((Term::Null, start));
                }
                TokenKind::Null => return Err(ParseFilterError::unsupported(start, "null")),
                TokenKind::Open => {
                    self.advance()?;
                    self.open.push(Open::Group(start));
                }
                TokenKind::Word(name) => {
                    self.advance()?;
                    if matches!(self.token.kind, TokenKind::Open) && self.token.start == end {
                        return Err(ParseFilterError::unsupported(start, "a function"));
                    }
                    return Ok((Term::Property(name.to_owned(), start), start));
                }
                _ => return Err(self.expected("a property or a literal")),
            }
        }
    }

    /// Takes what follows an operand: up to an operator that wants another one, or to the end,
    /// which gives the filter.
    fn operators(
        &mut self,
        mut term: Term,
        mut start: usize,
    ) -> Result<Option<Filter>, ParseFilterError> {
        loop {
            if let TokenKind::Word("add" | "div" | "has" | "in" | "mod" | "mul" | "sub") =
                self.token.kind
            {
                let what = "an operator that does not compare";
                return Err(ParseFilterError::unsupported(self.token.start, what));
            }
            if let Some(Open::Comparison(..)) = self.open.last()
                && let Some(Open::Comparison(left, operator, left_start)) = self.open.pop()
            {
                start = left_start;
                term = compare(left, operator, term, self.syntax)
                    .map(Term::Condition)
                    .map_err(|what| ParseFilterError::unsupported(start, what))?;
            }
            // A second operator finds a comparison on its left, which `compare` refuses.
            if let TokenKind::Comparison(operator) = self.token.kind {
                self.open.push(Open::Comparison(term, operator, start));
                self.advance()?;
                return Ok(None);
            }
            if matches!(term, Term::Literal(_) | Term::Null | Term::Property(..))
                && !matches!(
                    self.token.kind,
                    TokenKind::And | TokenKind::Close | TokenKind::End | TokenKind::Or
                )
            {
                return Err(self.expected("a comparison operator"));
            }
            while let Some(Open::Not) = self.open.last() {
                self.open.pop();
                term = Term::Condition(!self.condition(term, Operand::Negated)?);
            }
            if matches!(self.token.kind, TokenKind::And) {
                let terms = self.and(term)?;
                self.open.push(Open::And(terms));
                self.advance()?;
                return Ok(None);
            }
            if let Some(Open::And(_)) = self.open.last() {
                term = Term::All(self.and(term)?);
            }
            if matches!(self.token.kind, TokenKind::Or) {
                let terms = self.or(term)?;
                self.open.push(Open::Or(terms));
                self.advance()?;
                return Ok(None);
            }
            if let Some(Open::Or(_)) = self.open.last() {
                term = Term::Any(self.or(term)?);
            }
            let Some(open) = self.open.pop() else {
                let filter = self.condition(term, Operand::Whole)?;
                return match self.token.kind {
                    TokenKind::End => Ok(Some(filter)),
                    _ => Err(self.expected("`and`, `or` or the end of the filter")),
                };
            };
            if let Open::Group(group_start) = open
                && matches!(self.token.kind, TokenKind::Close)
            {
                start = group_start;
                self.advance()?;
            } else {
                return Err(self.expected("`and`, `or` or a closing parenthesis"));
            }
        }
    }

    /// The terms in front of an `and` that has been read, and this one.
    fn and(&mut self, term: Term) -> Result<VecDeque<Filter>, ParseFilterError> {
        let right = match term {
            Term::All(terms) => terms,
            term => {
                let operand = match self.open.last() {
                    Some(Open::And(_)) => Operand::Right("And"),
                    _ => Operand::Left("And"),
                };
                VecDeque::from([self.condition(term, operand)?])
            }
        };
        Ok(
            match self.open.pop_if(|open| matches!(open, Open::And(_))) {
                Some(Open::And(left)) => joined(left, right),
                _ => right,
            },
        )
    }

    /// The terms in front of an `or` that has been read, and this one.
    fn or(&mut self, term: Term) -> Result<VecDeque<Filter>, ParseFilterError> {
        let right = match term {
            Term::Any(terms) => terms,
            term => {
                let operand = match self.open.last() {
                    Some(Open::Or(_)) => Operand::Right("Or"),
                    _ => Operand::Left("Or"),
                };
                VecDeque::from([self.condition(term, operand)?])
            }
        };
        Ok(match self.open.pop_if(|open| matches!(open, Open::Or(_))) {
            Some(Open::Or(left)) => joined(left, right),
            _ => right,
        })
    }

    /// The term as a condition of its own, now that no operator follows it.
    fn condition(&self, term: Term, operand: Operand) -> Result<Filter, ParseFilterError> {
        match term {
            Term::All(terms) => Ok(Filter::And(terms.into())),
            Term::Any(terms) => Ok(Filter::Or(terms.into())),
            Term::Condition(filter) => Ok(filter),
            Term::Literal(Value::Boolean(constant)) => Ok(Filter::Constant(constant)),
            Term::Literal(_) | Term::Null => Err(self.expected("a comparison operator")),
            Term::Property(name, start) => match declared_type(&name) {
                None => Ok(Filter::Property(name)),
                Some(_) if self.syntax == FilterSyntax::Azurite => Ok(is_not_empty(name)),
                Some(type_name) => Err(ParseFilterError::condition(start, type_name, operand)),
            },
        }
    }

    fn advance(&mut self) -> Result<(), ParseFilterError> {
        self.token = self.lexer.token()?;
        Ok(())
    }

    fn expected(&self, expected: &'static str) -> ParseFilterError {
        let Token { start, end, .. } = self.token;
        ParseFilterError::unexpected(start, end, self.lexer.from(start), expected)
    }
}

/// All terms in order. The shorter list moves, so that no grouping of a chain takes quadratic time.
fn joined(mut left: VecDeque<Filter>, mut right: VecDeque<Filter>) -> VecDeque<Filter> {
    if left.len() >= right.len() {
        left.append(&mut right);
        return left;
    }
    while let Some(term) = left.pop_back() {
        right.push_front(term);
    }
    right
}

/// A comparison as the service implements it, or what it does not implement.
// SERVICE: 501 NotImplemented for `prop eq prop` and for `1 eq 2`; the same is assumed for a
// comparison's truth.
fn compare(
    left: Term,
    operator: ComparisonOperator,
    right: Term,
    syntax: FilterSyntax,
) -> Result<Filter, &'static str> {
    let properties = |left, operator, right| {
        Filter::Properties(PropertyComparison {
            left,
            operator,
            right,
        })
    };
    match (left, right) {
        (Term::Property(property, _), Term::Literal(literal)) => {
            let literal = literal_for(&property, literal, syntax);
            Ok(Filter::comparison(property, operator, literal))
        }
        (Term::Literal(literal), Term::Property(property, _)) => {
            let literal = literal_for(&property, literal, syntax);
            Ok(Filter::comparison(property, operator.flipped(), literal))
        }
        (Term::Property(left, _), Term::Property(right, _)) if syntax == FilterSyntax::Azurite => {
            Ok(properties(left, operator, Some(right)))
        }
        (Term::Property(property, _), Term::Null) => Ok(properties(property, operator, None)),
        (Term::Null, Term::Property(property, _)) => {
            Ok(properties(property, operator.flipped(), None))
        }
        (Term::Null, Term::Null) => Ok(Filter::Constant(operator == ComparisonOperator::Equal)),
        (Term::Literal(_), Term::Literal(_)) => Err("a comparison of two literals"),
        (Term::Property(..), Term::Property(..)) => Err("a comparison of two properties"),
        (Term::Null, _) | (_, Term::Null) => Err("a comparison with null"),
        _ => Err("a comparison of a condition"),
    }
}

/// The literal with which a property is compared.
fn literal_for(property: &str, literal: Value, syntax: FilterSyntax) -> Value {
    match literal {
        Value::Binary(bytes)
            if syntax == FilterSyntax::CosmosDb
                && declared_type(property) == Some("Edm.String") =>
        {
            String::from_utf8(bytes)
                .map_or_else(|error| Value::Binary(error.into_bytes()), Value::String)
        }
        literal => literal,
    }
}

/// The type of a property that each entity has.
// SERVICE: a comparison of such a property with a literal of another type is accepted, and false.
fn declared_type(property: &str) -> Option<&'static str> {
    match property {
        "PartitionKey" | "RowKey" => Some("Edm.String"),
        "Timestamp" => Some("Edm.DateTime"),
        _ => None,
    }
}

/// A key or the `Timestamp` as a condition, in a language where a text that is not empty is true.
fn is_not_empty(property: String) -> Filter {
    if property == "Timestamp" {
        return Filter::Constant(true);
    }
    Filter::comparison(property, ComparisonOperator::NotEqual, "")
}
