//! A page of a query, and the token that the next page, or a repair, starts from. This module does
//! not know how a page is fetched.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::continuation::EntityContinuation;

use crate::error::{Error, ErrorKind};

/// Some items of a query, and where the next ones start.
///
/// For serde (feature `serde`) it is `{"items":[…],"next":"…"}`. After the last page `next` is
/// null.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # for id in ["1", "2", "3"] {
/// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
/// # }
/// let mut token = None;
/// loop {
///     let page = table.query::<Employee>().partition("Sales").page_size(2).page(token).await?;
///     println!("{} employees", page.items.len());
///     token = page.next;
///     if token.is_none() {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, in the order of their keys.
    pub items: Vec<T>,
    /// Where the next page starts; `None` after the last page. The next page may still be empty.
    pub next: Option<PageToken>,
}

impl<T> Page<T> {
    /// A page of these items: for a fake of a program's own trait, in its tests.
    /// [`PageToken::fake`] makes a token. The [guide to
    /// testing](crate::guide::testing#without-a-table) shows a fake.
    ///
    /// ```
    /// use tablesdk::query::Page;
    ///
    /// let last = Page::new(vec!["Ada", "Grace"], None);
    /// assert_eq!(last.items.len(), 2);
    /// ```
    pub const fn new(items: Vec<T>, next: Option<PageToken>) -> Self {
        Self { items, next }
    }

    /// The page with each item converted, and with the same token: from entities to what a response
    /// shows of them, for instance.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let page = table.query::<Employee>().partition("Sales").take(2).page(None).await?;
    /// let page = page.map(|e| format!("{} {}", e.id, e.name));
    /// assert_eq!(page.items, ["1 Ada", "2 Ada"]);
    /// assert!(page.next.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(convert).collect(),
            next: self.next,
        }
    }
}

/// The position at which a page of a query starts, or a [repair](crate::index::Repair::resume_at)
/// resumes. Its string form fits into a URL: hand it out, and parse it when it comes back.
///
/// The token contains a key of the table in readable form and is not signed. It grants no access:
/// the credential and the query determine what can be read, never the token. The token does not
/// contain the query: to continue, run the same query, even in another process or on another day.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # for id in ["1", "2", "3"] {
/// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
/// # }
/// use tablesdk::ErrorKind;
/// use tablesdk::query::PageToken;
///
/// let query = || table.query::<Employee>().partition("Sales").take(2);
/// let text = query().page(None).await?.next.expect("there is a third").to_string();
///
/// let token: PageToken = text.parse()?;
/// assert_eq!(query().page(token.clone()).await?.items.len(), 1);
///
/// // It is of no use for another query.
/// let error = table.query::<Employee>().page(token).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Input);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageToken {
    query: u64,
    continuation: EntityContinuation,
}

impl PageToken {
    /// A token of no query, for a [page](Page::new) of a fake: it stands for a page that starts at
    /// that key. A query of a table rejects it, as it does the token of any other query.
    ///
    /// ```
    /// use tablesdk::key::EntityKey;
    /// use tablesdk::query::PageToken;
    ///
    /// let grace = EntityKey::new("Sales", "2")?;
    /// let token = PageToken::fake(&grace);
    /// let text = token.to_string(); // through the program under test
    /// assert_eq!(text.parse::<PageToken>()?, PageToken::fake(&grace));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fake(key: &EntityKey) -> Self {
        let continuation = EntityContinuation {
            next_partition_key: key.partition_key().as_str().to_owned(),
            next_row_key: Some(key.row_key().as_str().to_owned()),
        };
        Self::new(NO_QUERY, continuation)
    }

    pub(crate) const fn new(query: u64, continuation: EntityContinuation) -> Self {
        Self {
            query,
            continuation,
        }
    }

    /// The token in a string, if there is one and it is not empty.
    pub(crate) fn optional(text: Option<&str>) -> Result<Option<Self>, TokenError> {
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| parse(text).ok_or(TokenError::Form))
            .transpose()
    }

    /// Where to go on, if the token is one of that query.
    pub(crate) fn into_continuation(self, query: u64) -> Result<EntityContinuation, TokenError> {
        self.into_continuation_of(&[query])
    }

    /// As [`into_continuation`](Self::into_continuation), for a query that is known by several
    /// fingerprints.
    pub(crate) fn into_continuation_of(
        self,
        queries: &[u64],
    ) -> Result<EntityContinuation, TokenError> {
        if queries.contains(&self.query) {
            Ok(self.continuation)
        } else {
            Err(TokenError::OtherQuery)
        }
    }
}

/// Distinguishes queries by table, filter and projection. It is the same in every build, since
/// tokens outlive programs.
pub(crate) fn fingerprint<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    // FNV-1a, with a byte that no text has after each of them.
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for text in texts {
        for byte in text.bytes().chain([0xFF]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    hash
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntityContinuation {
            next_partition_key,
            next_row_key,
        } = &self.continuation;
        let mut bytes = self.query.to_be_bytes().to_vec();
        bytes.extend_from_slice(next_partition_key.as_bytes());
        if let Some(row_key) = next_row_key {
            bytes.push(SEPARATOR);
            bytes.extend_from_slice(row_key.as_bytes());
        }
        f.write_str(VERSION)?;
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for PageToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::input(TokenError::Form))
    }
}

/// As its text.
#[cfg(feature = "serde")]
impl serde::Serialize for PageToken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PageToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| serde::de::Error::custom(TokenError::Form))
    }
}

fn parse(text: &str) -> Option<PageToken> {
    let encoded = text.strip_prefix(VERSION)?;
    if encoded.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let (query, keys) = bytes.split_first_chunk()?;
    let mut keys = keys.splitn(2, |byte| *byte == SEPARATOR);
    let partition_key = String::from_utf8(keys.next()?.to_owned()).ok()?;
    let row_key = keys.next().map(|key| String::from_utf8(key.to_owned()));
    Some(PageToken {
        query: u64::from_be_bytes(*query),
        continuation: EntityContinuation {
            next_partition_key: partition_key,
            next_row_key: row_key.transpose().ok()?,
        },
    })
}

/// The error of a page that starts at a token of the caller. The service itself finds out that a
/// token was changed behind what identifies its query.
pub(crate) fn of_token(error: Error) -> Error {
    let is_refused = error.kind() == ErrorKind::Service && error.code().is_some();
    if !is_refused || error.status() != Some(StatusCode::BAD_REQUEST) {
        return error;
    }
    let refused = Error::input(TokenRefused { why: error.why() });
    let refused = refused.with_attempts(error.attempts(), error.elapsed());
    match error.operation() {
        Some(operation) => refused.with_operation(operation),
        None => refused,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the page token is not as it was given out: the service responds {why}")]
struct TokenRefused {
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("not a page token")]
    Form,
    #[error("the page token comes from a query of another table, filter or projection")]
    OtherQuery,
}

const VERSION: &str = "1.";
/// The fingerprint of a token of no query. That of a query is another one, but for one in 2^64.
const NO_QUERY: u64 = 0;
/// No byte of UTF-8.
const SEPARATOR: u8 = 0xFF;
/// Both keys have 1 KiB of UTF-16 at most, which the service encodes in Base64.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_as_text() {
        for (partition_key, row_key) in [("", None), ("1!4!YQ--", Some("")), ("ä/?&", Some("b"))] {
            let token = PageToken::new(
                u64::MAX,
                EntityContinuation {
                    next_partition_key: partition_key.to_owned(),
                    next_row_key: row_key.map(str::to_owned),
                },
            );
            let text = token.to_string();
            assert!(
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            );
            assert_eq!(text.parse::<PageToken>().unwrap(), token);
            assert!(token.clone().into_continuation(u64::MAX).is_ok());
            assert!(token.into_continuation(0).is_err());
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!("1.{}", "A".repeat(TOKEN_BYTES_MAX + 1));
        for text in [
            "",
            "1.",
            "1.AAAA",
            "2.AAAAAAAAAAA",
            "1.AAAAAAAAAAA=",
            "1.ä",
            "1.AAAAAAAAAAD-",
            &long,
        ] {
            assert!(text.parse::<PageToken>().is_err(), "{text}");
        }
    }

    #[test]
    fn queries_have_different_fingerprints_and_keep_them() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_ne!(fingerprint(["a"]), fingerprint(["a", ""]));
        assert_eq!(fingerprint([]), 0xCBF2_9CE4_8422_2325);
    }
}
