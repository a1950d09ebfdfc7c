//! The audiences of tokens in each of Microsoft's clouds, and the hosts that are trusted.

use tablesdk_protocol::Endpoint;

use crate::transport::Backend;

/// The audience of an endpoint.
pub(super) fn of(endpoint: &Endpoint, backend: Backend) -> &'static str {
    let host = endpoint.host().to_ascii_lowercase();
    let is_below = |domains: &[&str]| domains.iter().any(|domain| host.ends_with(domain));
    let cloud = if is_below(&[".usgovcloudapi.net", ".azure.us"]) {
        Cloud::Government
    } else if is_below(&[".chinacloudapi.cn", ".azure.cn"]) {
        Cloud::China
    } else {
        Cloud::Public
    };
    // SERVICE: one audience for all clouds is documented for storage as well; the official clients
    // use one a cloud.
    match (backend, cloud) {
        (Backend::Storage, Cloud::Public) => "https://storage.azure.com",
        (Backend::Storage, Cloud::Government) => "https://storage.azure.us",
        (Backend::Storage, Cloud::China) => "https://storage.azure.cn",
        (Backend::Cosmos, Cloud::Public) => "https://cosmos.azure.com",
        (Backend::Cosmos, Cloud::Government) => "https://cosmos.azure.us",
        (Backend::Cosmos, Cloud::China) => "https://cosmos.azure.cn",
    }
}

/// The scope to request for an audience.
pub(super) fn scope(audience: &str) -> String {
    let audience = audience.trim_end_matches('/');
    match audience.strip_suffix("/.default") {
        Some(_) => audience.to_owned(),
        None => format!("{audience}/.default"),
    }
}

/// Returns true if a token may be requested for an audience that a response of the service names. A
/// token for any other audience could be misused elsewhere by the server that responded.
// The next request would carry that token. Other audiences, and login pages that are not
// Microsoft's, leave the response a plain 401.
pub(super) fn is_trusted(audience: &str, endpoint: &Endpoint) -> bool {
    let Some(host) = host_of(audience) else {
        return false;
    };
    AUDIENCES.contains(&host) || host.eq_ignore_ascii_case(endpoint.host())
}

/// Returns true if a login page is Microsoft's.
pub(super) fn is_login_page(url: &str) -> bool {
    host_of(url).is_some_and(|host| LOGIN_HOSTS.contains(&host))
}

/// The host of a URL of https without port and user.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    host.bytes().all(is_host).then_some(host)
}

enum Cloud {
    China,
    Government,
    Public,
}

const AUDIENCES: [&str; 6] = [
    "cosmos.azure.cn",
    "cosmos.azure.com",
    "cosmos.azure.us",
    "storage.azure.cn",
    "storage.azure.com",
    "storage.azure.us",
];

const LOGIN_HOSTS: [&str; 5] = [
    "login.chinacloudapi.cn",
    "login.microsoftonline.com",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "login.windows.net",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cloud_has_its_audience() {
        for (url, expected) in [
            (
                "https://a.table.core.windows.net",
                "https://storage.azure.com",
            ),
            (
                "https://a.z01.table.storage.azure.net",
                "https://storage.azure.com",
            ),
            (
                "https://A.table.core.usgovcloudapi.net",
                "https://storage.azure.us",
            ),
            (
                "https://a.table.core.chinacloudapi.cn:443",
                "https://storage.azure.cn",
            ),
            (
                "https://a.table.cosmos.azure.com:443",
                "https://cosmos.azure.com",
            ),
            ("https://a.table.cosmos.azure.us", "https://cosmos.azure.us"),
            ("https://a.table.cosmos.azure.cn", "https://cosmos.azure.cn"),
            (
                "https://tables.contoso.example",
                "https://storage.azure.com",
            ),
        ] {
            let endpoint: Endpoint = url.parse().unwrap();
            assert_eq!(of(&endpoint, Backend::of(&endpoint)), expected, "{url}");
        }
        assert_eq!(
            scope("https://storage.azure.com/"),
            "https://storage.azure.com/.default"
        );
        assert_eq!(
            scope("https://a.example/.default"),
            "https://a.example/.default"
        );
    }

    #[test]
    fn nobody_else_is_trusted() {
        let endpoint: Endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        for (audience, expected) in [
            ("https://storage.azure.com", true),
            ("https://cosmos.azure.us/", true),
            ("https://acct.table.core.windows.net/", true),
            ("https://other.table.core.windows.net/", false),
            ("http://storage.azure.com", false),
            ("https://graph.microsoft.com", false),
            ("https://management.azure.com", false),
            ("https://storage.azure.com.evil.example", false),
            ("https://storage.azure.com@evil.example", false),
            ("https://evil.example/storage.azure.com", false),
            ("https://evil.example\\@storage.azure.com", false),
            ("storage.azure.com", false),
            ("", false),
        ] {
            assert_eq!(is_trusted(audience, &endpoint), expected, "{audience}");
        }
        assert!(is_login_page(
            "https://login.microsoftonline.com/common/oauth2/authorize"
        ));
        for url in [
            "http://login.microsoftonline.com/common",
            "https://login.microsoftonline.com.evil.example/x",
            "https://evil.example/login.microsoftonline.com",
        ] {
            assert!(!is_login_page(url), "{url}");
        }
    }
}
