//! How much metadata a payload carries, and how a request asks for it.

use crate::types::{ErrorCode, ServiceError};

/// How much metadata a JSON payload carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "OData JSON has these three levels")]
pub enum MetadataLevel {
    /// `odata=nometadata`: values only. Int64, DateTime, Guid and Binary are strings.
    None,
    /// `odata=minimalmetadata`: the types that JSON does not distinguish, and ETags.
    #[default]
    Minimal,
    /// `odata=fullmetadata`: also the type, id and edit link of each entity.
    Full,
}

impl MetadataLevel {
    /// The value of an `Accept` header that asks for this level.
    pub const fn accept(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata",
            Self::Minimal => "application/json;odata=minimalmetadata",
            Self::Full => "application/json;odata=fullmetadata",
        }
    }

    /// The `Content-Type` of a response.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }

    /// Reads the value of an `Accept` header or of `$format`. Of several media types, the one that
    /// names a level wins.
    ///
    /// # Errors
    ///
    /// `AtomFormatNotSupported` when only Atom is acceptable, `JsonVerboseFormatNotSupported` for
    /// verbose JSON, `MediaTypeNotSupported` when nothing in it is JSON.
    // SERVICE: without an Accept header, and for `*/*`, the service responds with Atom or 415;
    // clients can use only JSON.
    pub fn from_accept(accept: &str) -> Result<Self, ServiceError> {
        // Clients write no other forms.
        let mut levels = [Self::Minimal, Self::None, Self::Full].into_iter();
        if let Some(level) = levels.find(|level| level.accept() == accept) {
            return Ok(level);
        }
        let mut found = None;
        let mut refusal = None;
        for media_type in accept.split(',') {
            let mut parts = media_type.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let odata = parts.find_map(|parameter| {
                let (key, value) = parameter.split_once('=')?;
                let is_level = key.trim().eq_ignore_ascii_case("odata");
                is_level.then(|| value.trim())
            });
            if name.eq_ignore_ascii_case("application/json") {
                let is = |level| odata.is_some_and(|odata| odata.eq_ignore_ascii_case(level));
                if is("nometadata") {
                    return Ok(Self::None);
                } else if is("minimalmetadata") {
                    return Ok(Self::Minimal);
                } else if is("fullmetadata") {
                    return Ok(Self::Full);
                } else if is("verbose") {
                    refusal = Some(ErrorCode::JsonVerboseFormatNotSupported);
                } else {
                    found = Some(Self::Minimal);
                }
            } else if matches!(name, "" | "*/*" | "application/*") {
                found = Some(Self::Minimal);
            } else if name.eq_ignore_ascii_case("application/atom+xml") {
                refusal = Some(ErrorCode::AtomFormatNotSupported);
            }
        }
        found.ok_or_else(|| refusal.unwrap_or(ErrorCode::MediaTypeNotSupported).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers_of_clients_are_read() {
        for (accept, level) in [
            ("application/json;odata=nometadata", MetadataLevel::None),
            ("application/json; odata=nometadata", MetadataLevel::None),
            (
                "application/json;odata=minimalmetadata",
                MetadataLevel::Minimal,
            ),
            ("application/json;odata=fullmetadata", MetadataLevel::Full),
            (
                "APPLICATION/JSON;OData=FullMetadata;streaming=true",
                MetadataLevel::Full,
            ),
            ("application/json", MetadataLevel::Minimal),
            (
                "application/json, application/json;odata=nometadata",
                MetadataLevel::None,
            ),
            (
                "application/atom+xml,application/json",
                MetadataLevel::Minimal,
            ),
            ("*/*", MetadataLevel::Minimal),
            ("", MetadataLevel::Minimal),
        ] {
            assert_eq!(MetadataLevel::from_accept(accept), Ok(level), "{accept}");
        }
        for (accept, code) in [
            (
                "application/atom+xml,application/xml",
                ErrorCode::AtomFormatNotSupported,
            ),
            (
                "application/json;odata=verbose",
                ErrorCode::JsonVerboseFormatNotSupported,
            ),
            ("text/html", ErrorCode::MediaTypeNotSupported),
        ] {
            assert_eq!(
                MetadataLevel::from_accept(accept).unwrap_err().code(),
                &code,
                "{accept}"
            );
        }
    }
}
