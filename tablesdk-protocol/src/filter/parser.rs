//! Reads the text of a filter: recursive descent, each token once, in time linear in the text.
//!
//! A parenthesis opens either a group or an operand. It is parsed once as whatever it holds, a [`Term`], and what
//! follows it decides: going back would cost time exponential in the depth. Stack is bounded by [`FILTER_DEPTH_MAX`].
//!
//! ```text
//! or         = and *( "or" and )
//! and        = unary *( "and" unary )
//! unary      = "not" unary / comparison
//! comparison = operand [ operator operand ]
//! operand    = property / literal / "(" or ")"
//! ```

use std::mem;
use std::str::FromStr;

use super::lexer::{Lexer, Token, TokenKind};
use super::{ComparisonOperator, FILTER_DEPTH_MAX, Filter, ParseFilterError, ParseFilterErrorKind};
use crate::Value;

/// Reads a filter. A blank text is no filter, and true of every entity.
///
/// A literal on the left changes sides: `5 lt Age` reads as `Age gt 5`.
impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut lexer = Lexer::new(text);
        let token = lexer.token()?;
        let mut parser = Parser {
            lexer,
            token,
            depth: 0,
        };
        if matches!(parser.token.kind, TokenKind::End) {
            return Ok(Self::Constant(true));
        }
        let term = parser.or()?;
        let filter = parser.condition(term)?;
        match parser.token.kind {
            TokenKind::End => Ok(filter),
            _ => Err(parser.expected("`and`, `or` or the end of the filter")),
        }
    }
}

/// What was parsed, as long as it is open what it will be part of.
enum Term {
    Condition(Filter),
    Literal(Value),
    Property(String),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, read but not used.
    token: Token<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Term, ParseFilterError> {
        let mut term = self.and()?;
        while matches!(self.token.kind, TokenKind::Or) {
            let left = self.condition(term)?;
            self.advance()?;
            let right = self.and()?;
            term = Term::Condition(left.or(self.condition(right)?));
        }
        Ok(term)
    }

    fn and(&mut self) -> Result<Term, ParseFilterError> {
        let mut term = self.unary()?;
        while matches!(self.token.kind, TokenKind::And) {
            let left = self.condition(term)?;
            self.advance()?;
            let right = self.unary()?;
            term = Term::Condition(left.and(self.condition(right)?));
        }
        Ok(term)
    }

    fn unary(&mut self) -> Result<Term, ParseFilterError> {
        if !matches!(self.token.kind, TokenKind::Not) {
            return self.comparison();
        }
        let start = self.token.start;
        self.advance()?;
        // A parenthesis behind it counts for both: `not` is printed with one, and what was read must read again.
        let negated = if matches!(self.token.kind, TokenKind::Open) {
            self.unary()?
        } else {
            self.nested(start, Self::unary)?
        };
        Ok(Term::Condition(!self.condition(negated)?))
    }

    fn comparison(&mut self) -> Result<Term, ParseFilterError> {
        let start = self.token.start;
        let mut term = self.operand()?;
        // A second operator finds a comparison on its left, which `compare` refuses.
        while let TokenKind::Comparison(operator) = self.token.kind {
            self.advance()?;
            let right = self.operand()?;
            term = compare(term, operator, right)
                .map(Term::Condition)
                .map_err(|what| ParseFilterError::unsupported(start, what))?;
        }
        match (&term, &self.token.kind) {
            (Term::Condition(_), _)
            | (_, TokenKind::And | TokenKind::Close | TokenKind::End | TokenKind::Or) => Ok(term),
            _ => Err(self.expected("a comparison operator")),
        }
    }

    fn operand(&mut self) -> Result<Term, ParseFilterError> {
        let Token { start, end, .. } = self.token;
        let term = match mem::replace(&mut self.token.kind, TokenKind::End) {
            TokenKind::Literal(value) => {
                self.advance()?;
                Term::Literal(value)
            }
            TokenKind::Null => return Err(ParseFilterError::unsupported(start, "null")),
            TokenKind::Open => self.nested(start, Self::group)?,
            TokenKind::Word(name) => {
                self.advance()?;
                if matches!(self.token.kind, TokenKind::Open) && self.token.start == end {
                    return Err(ParseFilterError::unsupported(start, "a function"));
                }
                Term::Property(name.to_owned())
            }
            _ => return Err(self.expected("a property or a literal")),
        };
        match self.token.kind {
            TokenKind::Word("add" | "div" | "has" | "in" | "mod" | "mul" | "sub") => {
                let what = "an operator that does not compare";
                Err(ParseFilterError::unsupported(self.token.start, what))
            }
            _ => Ok(term),
        }
    }

    /// What an open parenthesis holds, and the closing one.
    fn group(&mut self) -> Result<Term, ParseFilterError> {
        self.advance()?;
        let term = self.or()?;
        if !matches!(self.token.kind, TokenKind::Close) {
            return Err(self.expected("`and`, `or` or a closing parenthesis"));
        }
        self.advance()?;
        Ok(term)
    }

    /// One level deeper.
    fn nested(
        &mut self,
        start: usize,
        parse: fn(&mut Self) -> Result<Term, ParseFilterError>,
    ) -> Result<Term, ParseFilterError> {
        if self.depth == FILTER_DEPTH_MAX {
            return Err(ParseFilterError {
                offset: start,
                kind: ParseFilterErrorKind::TooDeep,
            });
        }
        self.depth += 1;
        let term = parse(self)?;
        self.depth -= 1;
        Ok(term)
    }

    /// The term as a condition of its own, now that no operator follows it.
    fn condition(&self, term: Term) -> Result<Filter, ParseFilterError> {
        match term {
            Term::Condition(filter) => Ok(filter),
            Term::Literal(Value::Boolean(constant)) => Ok(Filter::Constant(constant)),
            Term::Literal(_) => Err(self.expected("a comparison operator")),
            Term::Property(name) => Ok(Filter::Property(name)),
        }
    }

    fn advance(&mut self) -> Result<(), ParseFilterError> {
        self.token = self.lexer.token()?;
        Ok(())
    }

    const fn expected(&self, expected: &'static str) -> ParseFilterError {
        ParseFilterError::syntax(self.token.end, expected)
    }
}

/// A comparison as the service implements it, or what it does not implement.
// SERVICE: 501 NotImplemented for `prop eq prop` and for `1 eq 2`; the same is assumed for a comparison's truth.
fn compare(left: Term, operator: ComparisonOperator, right: Term) -> Result<Filter, &'static str> {
    match (left, right) {
        (Term::Property(property), Term::Literal(literal)) => {
            Ok(Filter::comparison(property, operator, literal))
        }
        (Term::Literal(literal), Term::Property(property)) => {
            Ok(Filter::comparison(property, operator.flipped(), literal))
        }
        (Term::Literal(_), Term::Literal(_)) => Err("a comparison of two literals"),
        (Term::Property(_), Term::Property(_)) => Err("a comparison of two properties"),
        (Term::Condition(_), _) | (_, Term::Condition(_)) => Err("a comparison of a condition"),
    }
}
