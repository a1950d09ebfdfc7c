//! The query of a URL: its options, decoded, and printed percent-encoded.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

use super::RESERVED;
use crate::types::limits::{OPERATION_SECONDS_MAX, PAGE_ITEMS_MAX, SELECT_NAMES_MAX};
use crate::types::text::{is_digits, whole_number};
use crate::types::{ErrorCode, ServiceError};

/// The options in the query of a URL, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryOptions {
    pairs: Vec<(Cow<'static, str>, String)>,
}

impl QueryOptions {
    /// Reads a query as it is on the wire. A plus sign stands for a space, as in a form.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when it is not percent-encoded UTF-8, or has more than 256 options.
    pub fn parse(query: &str) -> Result<Self, ServiceError> {
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == OPTIONS_MAX {
                return Err(ErrorCode::InvalidInput.into());
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((Cow::Owned(decode(name)?), decode(value)?));
        }
        Ok(Self { pairs })
    }

    /// The first value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Every value of an option, in order.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let pairs = self.pairs.iter().filter(move |(key, _)| key == name);
        pairs.map(|(_, value)| value.as_str())
    }

    /// Adds an option.
    pub fn push(&mut self, name: &'static str, value: impl Into<String>) {
        self.pairs.push((Cow::Borrowed(name), value.into()));
    }

    /// The names in `$select`, each once; `None` for all. At most 252, and without the names of
    /// metadata. Blanks around them are ignored, or kept as a part of them.
    pub(crate) fn select(&self, keeps_blanks: bool) -> Result<Option<Vec<String>>, ServiceError> {
        let list = self.get("$select").unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for name in list.split(',').filter(|name| !name.trim().is_empty()) {
            let name = if keeps_blanks { name } else { name.trim() };
            if name == "*" {
                return Ok(None);
            }
            // SERVICE: assumed. As a property it would collide with the metadata of the same name
            // in the response.
            if name.contains('@') || name.starts_with("odata.") {
                return Err(ErrorCode::InvalidInput.into());
            }
            if names.iter().any(|known| known == name) {
                continue;
            }
            if names.len() == SELECT_NAMES_MAX {
                return Err(ErrorCode::InvalidInput.into());
            }
            names.push(name.to_owned());
        }
        Ok((!names.is_empty()).then_some(names))
    }

    /// `$top`, from 0 to 1,000.
    pub(crate) fn top(&self) -> Result<Option<usize>, ServiceError> {
        match self.get("$top") {
            None | Some("") => Ok(None),
            Some(text) => match whole_number(text) {
                Some(top) if top <= PAGE_ITEMS_MAX => Ok(Some(top)),
                _ => Err(ErrorCode::InvalidInput.into()),
            },
        }
    }

    /// `$top`, where more than 1,000 counts as 1,000.
    pub(crate) fn capped_top(&self) -> Result<Option<usize>, ServiceError> {
        match self.get("$top") {
            Some(text) if is_digits(text) => {
                // More than a number can hold is more than 1,000, too.
                let top = whole_number(text).unwrap_or(PAGE_ITEMS_MAX);
                Ok(Some(top.min(PAGE_ITEMS_MAX)))
            }
            _ => self.top(),
        }
    }

    /// `timeout`: how long the operation may take, from 1 to 30 seconds. More counts as 30, and so
    /// does an absent value.
    ///
    /// # Errors
    ///
    /// `InvalidQueryParameterValue` for a value that is not a whole number,
    /// `OutOfRangeQueryParameterValue` for zero.
    // SERVICE: that 30 is the most is documented; both codes are assumed.
    pub fn timeout(&self) -> Result<Duration, ServiceError> {
        let text = match self.get("timeout") {
            None | Some("") => return Ok(Duration::from_secs(OPERATION_SECONDS_MAX)),
            Some(text) => text.trim(),
        };
        if !is_digits(text) {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        // More than a number can hold is more than 30, too.
        let seconds = whole_number(text).unwrap_or(u64::MAX);
        if seconds == 0 {
            return Err(ErrorCode::OutOfRangeQueryParameterValue.into());
        }
        Ok(Duration::from_secs(seconds.min(OPERATION_SECONDS_MAX)))
    }

    /// Refuses the options of OData that the service does not have.
    pub(crate) fn refuse_unsupported(&self) -> Result<(), ServiceError> {
        match self
            .pairs
            .iter()
            .find(|(name, _)| UNSUPPORTED.contains(&name.as_ref()))
        {
            Some(_) => Err(ErrorCode::NotImplemented.into()),
            None => Ok(()),
        }
    }
}

/// Prints `?name=value&…`, or nothing.
impl fmt::Display for QueryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.pairs.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            write!(
                f,
                "{separator}{}={}",
                utf8_percent_encode(name, RESERVED_IN_NAMES),
                utf8_percent_encode(value, RESERVED)
            )?;
        }
        Ok(())
    }
}

fn decode(text: &str) -> Result<String, ServiceError> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(ErrorCode::InvalidInput.into()),
    }
}

/// The dollar sign of OData's own options is not escaped by any client.
const RESERVED_IN_NAMES: &AsciiSet = &RESERVED.remove(b'$');

const UNSUPPORTED: [&str; 6] = [
    "$count",
    "$expand",
    "$inlinecount",
    "$orderby",
    "$skip",
    "$skiptoken",
];

/// The maximum number of options of a query. The service knows about thirty; a limit bounds the
/// memory that unknown ones take.
const OPTIONS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_that_clients_use() {
        let options =
            QueryOptions::parse("%24filter=a%20eq%20'b'&$top=5&&x&$select=+a,b+,a,").unwrap();
        assert_eq!(options.get("$filter"), Some("a eq 'b'"));
        assert_eq!(options.top(), Ok(Some(5)));
        assert_eq!(options.get("x"), Some(""));
        assert_eq!(options.get("y"), None);
        assert_eq!(
            options.select(false),
            Ok(Some(vec!["a".to_owned(), "b".to_owned()]))
        );
        assert_eq!(
            QueryOptions::parse("$select=").unwrap().select(false),
            Ok(None)
        );
        assert_eq!(
            QueryOptions::parse("$select=a,*").unwrap().select(false),
            Ok(None)
        );
    }

    #[test]
    fn a_large_top_may_count_as_the_largest() {
        let top = |query| QueryOptions::parse(query).unwrap().capped_top();
        for (query, expected) in [
            ("", None),
            ("$top=", None),
            ("$top=0", Some(0)),
            ("$top=1000", Some(1000)),
            ("$top=1001", Some(1000)),
            ("$top=99999999999999999999", Some(1000)),
        ] {
            assert_eq!(top(query), Ok(expected), "{query}");
        }
        assert!(top("$top=-1").is_err() && top("$top=ten").is_err());
    }

    #[test]
    fn invalid_options_are_refused() {
        for query in [
            "$top=-1",
            "$top=1001",
            "$top=ten",
            "$top=99999999999999999999",
            "$top=%2B5",
            "$top=+5",
            "$top=5.0",
            "$top=0x5",
            "$top=%D9%A5",
        ] {
            assert!(
                QueryOptions::parse(query).unwrap().top().is_err(),
                "{query}"
            );
        }
        let many: Vec<String> = (0..253).map(|index| format!("p{index}")).collect();
        let select =
            |names: &[String]| QueryOptions::parse(&format!("$select={}", names.join(",")));
        assert!(select(&many[..252]).unwrap().select(false).is_ok());
        assert!(select(&many).unwrap().select(false).is_err());
        for (list, is_refused) in [
            ("x@odata.type", true),
            ("a,odata.etag", true),
            ("a@b", true),
            ("odata,odataa", false),
        ] {
            let options = QueryOptions::parse(&format!("$select={list}")).unwrap();
            assert_eq!(options.select(false).is_err(), is_refused, "{list}");
        }
        assert!(QueryOptions::parse("$filter=%FF").is_err());
        assert!(QueryOptions::parse(&"a&".repeat(256)).is_ok());
        assert!(QueryOptions::parse(&"a&".repeat(257)).is_err());
        assert!(
            QueryOptions::parse("$orderby=a")
                .unwrap()
                .refuse_unsupported()
                .is_err()
        );
    }

    #[test]
    fn a_timeout_is_at_most_30_seconds() {
        let timeout = |query| QueryOptions::parse(query).unwrap().timeout();
        for (query, seconds) in [
            ("", 30),
            ("timeout=", 30),
            ("timeout=1", 1),
            ("timeout=015", 15),
            ("timeout=30", 30),
            ("timeout=31", 30),
            ("timeout=99999999999999999999", 30),
            ("timeout=5&timeout=7", 5),
        ] {
            assert_eq!(timeout(query), Ok(Duration::from_secs(seconds)), "{query}");
        }
        for query in ["timeout=-1", "timeout=x", "timeout=1.5", "timeout=%2B5"] {
            let error = timeout(query).unwrap_err();
            assert_eq!(error.code(), &ErrorCode::InvalidQueryParameterValue);
        }
        let error = timeout("timeout=0").unwrap_err();
        assert_eq!(error.code(), &ErrorCode::OutOfRangeQueryParameterValue);
    }

    #[test]
    fn printed_options_are_read_back() {
        let mut options = QueryOptions::default();
        assert_eq!(options.to_string(), "");
        options.push("$filter", "a eq 'é&+='");
        options.push("$top", "5");
        assert_eq!(
            options.to_string(),
            "?$filter=a%20eq%20%27%C3%A9%26%2B%3D%27&$top=5"
        );
        for query in [
            options.to_string().trim_start_matches('?'),
            "a%26b%3D%25=1&%C3%A9=&=%20",
        ] {
            let options = QueryOptions::parse(query).unwrap();
            assert_eq!(options.to_string(), format!("?{query}"));
        }
    }
}
