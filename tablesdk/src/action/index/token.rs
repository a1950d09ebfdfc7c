//! The token that a repair is resumed with: a pass over the entities or over the entries of an index, and a page of it.

use std::fmt;
use std::str::FromStr;

use tablesdk_protocol::continuation::EntityContinuation;

use crate::error::Error;
use crate::query::PageToken;

/// The position of a [`repair`](crate::TableClient::repair): what is before it has been compared. Its string form can be stored and
/// parsed, and stays valid in another process or on another day.
///
/// The token contains a key of the table in readable form and is not signed. It grants no access. It resumes a repair of the same
/// table, entity type and partition only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairToken {
    /// The name of the index whose entries are compared; empty while the entities are.
    pass: String,
    page: PageToken,
}

impl RepairToken {
    /// The page of the pass that starts at the continuation, or the first one.
    pub(super) fn new(pass: &str, query: u64, continuation: Option<&EntityContinuation>) -> Self {
        let continuation = continuation.cloned().unwrap_or_else(first_page);
        Self {
            pass: pass.to_owned(),
            page: PageToken::new(query, continuation),
        }
    }

    pub(super) fn pass(&self) -> &str {
        &self.pass
    }

    /// The page to start at, `None` for the first one, if the token is one of that query.
    pub(super) fn into_continuation(
        self,
        query: u64,
    ) -> Result<Option<EntityContinuation>, RepairTokenError> {
        let continuation = self.page.into_continuation(query);
        let continuation = continuation.map_err(|_| RepairTokenError::OtherRepair)?;
        Ok(Some(continuation).filter(|continuation| *continuation != first_page()))
    }
}

/// No service returns it: it names no key.
const fn first_page() -> EntityContinuation {
    EntityContinuation {
        next_partition_key: String::new(),
        next_row_key: None,
    }
}

impl fmt::Display for RepairToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.page, self.pass)
    }
}

impl FromStr for RepairToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::input(RepairTokenError::Form))
    }
}

/// As its text.
#[cfg(feature = "serde")]
impl serde::Serialize for RepairToken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for RepairToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| serde::de::Error::custom(RepairTokenError::Form))
    }
}

fn parse(text: &str) -> Option<RepairToken> {
    let (page, pass) = text.rsplit_once('.')?;
    Some(RepairToken {
        pass: pass.to_owned(),
        page: page.parse().ok()?,
    })
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum RepairTokenError {
    #[error("not a token of a repair")]
    Form,
    #[error("the token comes from a repair of another table, entity type or partition")]
    OtherRepair,
}
