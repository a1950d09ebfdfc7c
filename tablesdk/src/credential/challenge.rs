//! The challenge in a 401 of the service: the login page and the audience of the tokens that it
//! accepts.
//!
//! This module only parses it. [`audience`] decides which hosts are trusted. See
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory#bearer-challenge>.

use super::audience;

/// A `WWW-Authenticate` of the scheme `Bearer`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where to log in.
    authorization: Option<String>,
    /// The audience that the token must have.
    pub(super) audience: Option<String>,
}

impl Challenge {
    /// Reads the header; `None` for another scheme.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, mut rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("Bearer") || header.len() > HEADER_BYTES_MAX {
            return None;
        }
        let mut challenge = Self::default();
        // SERVICE: commas or blanks between the parameters, quotes around a value or none.
        loop {
            rest = rest.trim_start_matches([' ', ',', '\t']);
            let Some((name, after)) = rest.split_once('=') else {
                return Some(challenge);
            };
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_once([' ', ',', '\t']).unwrap_or((after, "")),
            };
            rest = after;
            let slot = match name.trim().to_ascii_lowercase().as_str() {
                "authorization_uri" | "authorization" => &mut challenge.authorization,
                "resource_id" | "resource" | "scope" => &mut challenge.audience,
                _ => continue,
            };
            slot.get_or_insert_with(|| value.to_owned());
        }
    }

    /// The tenant: the first segment of the path of the login page. `None` for one that stands for
    /// any tenant.
    pub(super) fn tenant(&self) -> Option<&str> {
        let url = self.authorization.as_deref()?;
        let (_, rest) = url.split_once("://")?;
        let tenant = rest.split('/').nth(1)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
        let is_any = ["common", "organizations", "consumers"].contains(&tenant);
        (!tenant.is_empty() && !is_any && tenant.bytes().all(is_name)).then_some(tenant)
    }

    /// Returns true if the challenge has a login page that is not Microsoft's.
    pub(super) fn has_untrusted_login_page(&self) -> bool {
        let page = self.authorization.as_deref();
        page.is_some_and(|page| !audience::is_login_page(page))
    }
}

/// Many times the length of the service's challenges.
const HEADER_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let uri = "https://login.microsoftonline.com/72f988bf/oauth2/authorize";
        let resource = "https://storage.azure.com";
        for header in [
            format!("Bearer authorization_uri={uri} resource_id={resource}"),
            format!("bearer authorization={uri}, resource={resource}"),
            format!(r#"Bearer authorization="{uri}", scope="{resource}""#),
            format!(r#"Bearer  realm="", authorization_uri="{uri}" ,resource_id={resource}, x=y"#),
        ] {
            let challenge = Challenge::parse(&header).unwrap();
            assert_eq!(challenge.tenant(), Some("72f988bf"), "{header}");
            assert_eq!(challenge.audience.as_deref(), Some(resource), "{header}");
            assert!(!challenge.has_untrusted_login_page());
        }
    }

    #[test]
    fn what_says_nothing_gives_nothing() {
        for header in ["", "Bearer", "Basic realm=x", "Bearer x=\"unfinished"] {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
        assert_eq!(
            Challenge::parse(&format!("Bearer x={}", "y".repeat(5000))),
            None
        );
        assert_eq!(Challenge::parse("Bearer x"), Some(Challenge::default()));
        for uri in [
            "https://login.microsoftonline.com/common/x",
            "https://login.microsoftonline.com",
            "https://x/a%20b/",
            "x",
        ] {
            let challenge = Challenge::parse(&format!("Bearer authorization_uri={uri}")).unwrap();
            assert_eq!(challenge.tenant(), None, "{uri}");
        }
        let challenge =
            Challenge::parse("Bearer authorization_uri=https://evil.example/t").unwrap();
        assert!(challenge.has_untrusted_login_page());
    }
}
