//! The headers of a request, as the operations read them: whether it came alone or as a part of a
//! batch.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::types::header;
use crate::wire::http_message::HeaderLine;

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestHeaders<'r> {
    /// The headers of a request that came alone.
    Alone(&'r HeaderMap),
    /// The headers of a part of a batch.
    Part(&'r [HeaderLine<'r>]),
}

impl<'r> RequestHeaders<'r> {
    /// Every value of a header, in order.
    pub(super) fn all(self, name: HeaderName) -> impl Iterator<Item = &'r [u8]> {
        let (map, lines) = match self {
            Self::Alone(map) => (Some(map), &[][..]),
            Self::Part(lines) => (None, lines),
        };
        let of_map = map.map(|map| map.get_all(&name).iter());
        let of_map = of_map.into_iter().flatten().map(HeaderValue::as_bytes);
        let lines = lines.iter().filter(move |line| line.is(&name));
        of_map.chain(lines.map(|line| line.value))
    }

    /// The first value of a header.
    pub(super) fn first(self, name: HeaderName) -> Option<&'r [u8]> {
        match self {
            Self::Alone(map) => map.get(name).map(HeaderValue::as_bytes),
            Self::Part(lines) => {
                let line = lines.iter().find(|line| line.is(&name));
                line.map(|line| line.value)
            }
        }
    }

    /// The value of a header, if it is a string and the only one of a request that came alone.
    pub(super) fn only_text(self, name: HeaderName) -> Option<&'r str> {
        let mut values = match self {
            Self::Alone(map) => map.get_all(name).iter(),
            Self::Part(_) => return None,
        };
        let first = values.next()?;
        values
            .next()
            .is_none()
            .then(|| header::text(first.as_bytes()))?
    }

    /// The first value of a header, if it is a string.
    pub(super) fn text(self, name: HeaderName) -> Option<&'r str> {
        self.first(name).and_then(header::text)
    }

    /// Every value of a header that is a string, in order.
    pub(super) fn texts(self, name: HeaderName) -> impl Iterator<Item = &'r str> {
        self.all(name).filter_map(header::text)
    }

    /// Returns true if the request has the header.
    pub(super) fn contains(self, name: HeaderName) -> bool {
        self.first(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::http_message::read_request;

    proptest! {
        #[test]
        fn a_part_has_the_headers_of_a_request_that_comes_alone(
            lines in prop::collection::vec(("Accept|ACCEPT|prefer|If-Match", "([!-~é\t]([ -~é\t]{0,9}[!-~é])?)?"), 0..6),
        ) {
            let mut map = HeaderMap::new();
            let mut text = "GET / HTTP/1.1\r\n".to_owned();
            for (name, value) in &lines {
                let value = value.trim();
                text = text + name + ": " + value + "\r\n";
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let mut lines = Vec::new();
            read_request(text.as_bytes(), &mut lines).unwrap();
            let (alone, part) = (RequestHeaders::Alone(&map), RequestHeaders::Part(&lines));
            for name in [http::header::ACCEPT, header::PREFER, http::header::IF_MATCH, header::X_HTTP_METHOD] {
                prop_assert!(alone.all(name.clone()).eq(part.all(name.clone())));
                prop_assert!(alone.texts(name.clone()).eq(part.texts(name.clone())));
                prop_assert_eq!(alone.first(name.clone()), part.first(name.clone()));
                let value = map.get(&name);
                prop_assert_eq!(part.text(name.clone()), value.and_then(|value| value.to_str().ok()));
                let is_only = map.get_all(&name).iter().count() == 1;
                let only = value.filter(|_| is_only).and_then(|value| value.to_str().ok());
                prop_assert_eq!(alone.only_text(name.clone()), only);
                prop_assert_eq!(part.contains(name), value.is_some());
            }
        }
    }
}
