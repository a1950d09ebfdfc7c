//! Preflights, and the CORS headers of other responses. Part of `service_properties`, which owns the rules of the account.

use crate::client::{Credential, Response};
use crate::run::{Outcome, Suite, choice, holds, refused, same};
use crate::service_properties::{PUT, XML, properties};

/// Origins, methods, headers of requests and headers of responses.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a str);

const XYZ: &str = "http://www.xyz.com";

pub(crate) fn rule((origins, methods, headers, exposed): Rule<'_>) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
    )
}

/// Sets the rules of the account.
async fn set(suite: &Suite, rules: &[Rule<'_>], expected: (u16, &str)) -> Outcome {
    let rules: String = rules.iter().map(|given| rule(*given)).collect();
    suite
        .expect(
            PUT,
            &[XML],
            &properties(&format!("<Cors>{rules}</Cors>")),
            expected,
        )
        .await
}

/// Sends a preflight without a credential. An empty string stands for a header that is absent.
async fn preflight(suite: &Suite, origin: &str, method: &str, headers: &str) -> Response {
    let named = [
        ("Origin", origin),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", headers),
    ];
    let headers: Vec<_> = named
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    suite
        .account
        .send(Credential::None, "OPTIONS /ConfTable", &headers, "")
        .await
}

/// The CORS headers of a response: allowed origin, credentials, exposed headers, `Vary`.
fn shown(response: &Response) -> [&str; 4] {
    [
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers",
        "Vary",
    ]
    .map(|name| response.header(name).unwrap_or("-"))
}

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let get = format!("GET /{table}()");
    choice!(
        suite,
        "4.11 a preflight uses the first rule that allows all of it",
        {
            let rules = [
                ("http://www.ab.com", "GET", "", ""),
                (
                    "http://www.ab.com,http://www.xyz.com",
                    "GET,PUT",
                    "x-ms-meta-data*,x-ms-meta-xyz",
                    "x-ms-meta-data*",
                ),
            ];
            set(suite, &rules, (202, "")).await?;
            let response = preflight(suite, XYZ, "GET", "x-ms-meta-xyz").await;
            same(
                "headers",
                &response.header("Access-Control-Allow-Headers"),
                &Some("x-ms-meta-xyz"),
            )?;
            same("shown", &shown(&response), &[XYZ, "true", "-", "-"])?;
            same("body", &response.body, &String::new())?;
            holds("an id", response.header("x-ms-request-id").is_some())?;
            for (origin, method, headers, is_allowed) in [
                (XYZ, "PUT", "", true),
                (XYZ, "GET", "X-MS-META-DATA, x-ms-meta-data-2,,", true),
                // The first rule does not allow headers, but the second one does.
                ("http://www.ab.com", "GET", "x-ms-meta-xyz", true),
                ("http://www.ab.com", "GET", "x-ms-meta-xyz2", false),
                (XYZ, "GET", "x-ms-meta-xyz, x-other", false),
                (XYZ, "GET", "x-ms-meta-dat", false),
                (XYZ, "DELETE", "", false),
                (XYZ, "get", "", false),
                ("http://www.XYZ.com", "GET", "", false),
                ("https://www.xyz.com", "GET", "", false),
                ("http://www.xyz.com:80", "GET", "", false),
                ("null", "GET", "", false),
            ] {
                let response = preflight(suite, origin, method, headers).await;
                let (status, code) = if is_allowed {
                    (200, "")
                } else {
                    (403, "CorsPreflightFailure")
                };
                refused(&response, status, code)
                    .map_err(|why| format!("{origin} {method} {headers}: {why}"))?;
                let message = response
                    .body
                    .contains("CORS not enabled or no matching rule found for this request.");
                same(
                    "message and headers",
                    &(message, shown(&response)[0] == "-"),
                    &(!is_allowed, !is_allowed),
                )?;
            }
            Ok(())
        }
    );
    choice!(suite, "4.11 a star allows everything of its kind", {
        set(suite, &[("*", "MERGE,OPTIONS", "*", "*")], (202, "")).await?;
        let response = preflight(suite, XYZ, "MERGE", "authorization,x-anything").await;
        same(
            "headers",
            &response.header("Access-Control-Allow-Headers"),
            &Some("authorization,x-anything"),
        )?;
        same(
            "methods",
            &response.header("Access-Control-Allow-Methods"),
            &Some("MERGE"),
        )?;
        same("shown", &shown(&response), &[XYZ, "true", "-", "-"])
    });
    choice!(
        suite,
        "4.11 a preflight has an origin and a method; otherwise it needs a credential",
        {
            set(suite, &[("*", "GET", "*", "")], (202, "")).await?;
            for (origin, method) in [(XYZ, ""), ("", "GET")] {
                let response = preflight(suite, origin, method, "").await;
                refused(&response, 400, "InvalidHeaderValue")?;
                holds(
                    "the message",
                    response
                        .body
                        .contains("A required CORS header is not present."),
                )?;
            }
            refused(
                &preflight(suite, "", "", "x-ms-date").await,
                403,
                "AuthenticationFailed",
            )?;
            suite
                .expect(
                    &format!("OPTIONS /{table}"),
                    &[],
                    "",
                    (405, "MethodNotAllowed"),
                )
                .await
        }
    );
    choice!(
        suite,
        "4.11 an account has its rules under its host and at its secondary, and other accounts have none",
        {
            let account = &suite.account;
            let (host, own) = (
                format!("Host: {}.table.localhost", account.name),
                format!("Host: {}", account.authority),
            );
            let secondary = format!("{}-secondary/ConfTable", account.path);
            let unknown = "/unknown/ConfTable";
            for (host, target, status, code) in [
                (&host, "/ConfTable", 200, ""),
                (&own, &secondary, 200, ""),
                (&own, unknown, 404, "ResourceNotFound"),
            ] {
                let headers = [
                    host,
                    "Origin: http://www.xyz.com",
                    "Access-Control-Request-Method: GET",
                ];
                refused(
                    &account
                        .send_to(Credential::None, "OPTIONS", target, &headers, "")
                        .await,
                    status,
                    code,
                )?;
            }
            Ok(())
        }
    );
    choice!(
        suite,
        "4.11 responses and errors are shown to the origins of a rule",
        {
            let rules = [
                ("http://www.ab.com", "GET,POST", "", ""),
                (XYZ, "GET,DELETE", "", "x-ms-request-id,x-ms-c*,Custom"),
            ];
            set(suite, &rules, (202, "")).await?;
            let headers = ["Origin: http://www.xyz.com", "x-ms-client-request-id: 1"];
            for (line, status) in [
                (&*get, 200),
                ("GET /ConfMissing()", 404),
                ("DELETE /Tables('ConfMissing')", 404),
            ] {
                let response = suite.ask(line, &headers, "").await;
                let exposed = "x-ms-request-id,x-ms-client-request-id,Custom";
                same(
                    line,
                    &(response.status, shown(&response)),
                    &(status, [XYZ, "true", exposed, "Origin"]),
                )?;
            }
            let response = suite.ask(&get, &["Origin: http://www.ab.com"], "").await;
            same(
                "nothing exposed",
                &shown(&response),
                &["http://www.ab.com", "true", "-", "Origin"],
            )
        }
    );
    choice!(
        suite,
        "4.11 a response has Vary if another origin would change it",
        {
            let (varies, nothing, all, exact) = (
                ["-", "-", "-", "Origin"],
                ["-"; 4],
                ["*", "-", "-", "-"],
                [XYZ, "true", "-", "Origin"],
            );
            let one: &[Rule<'_>] = &[(XYZ, "GET,PUT", "", "")];
            let every: &[Rule<'_>] = &[("*", "GET,PUT", "", "")];
            let both: &[Rule<'_>] = &[one[0], every[0]];
            let (other, acl) = ("http://other", format!("/{table}?comp=acl"));
            for (rules, method, origin, expected) in [
                (one, "GET", "", varies),
                (one, "GET", XYZ, exact),
                (one, "GET", other, varies),
                (one, "HEAD", "", varies),
                (one, "PUT", "", nothing),
                (one, "PUT", XYZ, exact),
                (one, "PUT", other, nothing),
                (every, "GET", "", nothing),
                (every, "GET", XYZ, all),
                (every, "PUT", XYZ, all),
                (every, "HEAD", XYZ, nothing),
                (both, "GET", "", varies),
                (both, "GET", XYZ, exact),
                (both, "GET", other, all),
            ] {
                set(suite, rules, (202, "")).await?;
                let header = format!("Origin: {origin}");
                let headers = if origin.is_empty() {
                    &[][..]
                } else {
                    &[&*header]
                };
                let response = suite.done(&format!("{method} {acl}"), headers, "").await?;
                same(
                    format!("{rules:?} {method} {origin}"),
                    &shown(&response),
                    &expected,
                )?;
            }
            Ok(())
        }
    );
    choice!(
        suite,
        "4.11 an unauthenticated client learns no more than by a preflight",
        {
            set(suite, &[(XYZ, "GET", "", "")], (202, "")).await?;
            for (method, origin, expected) in [
                ("GET", XYZ, [XYZ, "true", "-", "Origin"]),
                ("PUT", XYZ, ["-"; 4]),
                ("GET", "http://other", ["-"; 4]),
                // A request without an origin is not from a page.
                ("GET", "", ["-"; 4]),
                ("HEAD", "", ["-"; 4]),
            ] {
                let header = format!("Origin: {origin}");
                let headers = if origin.is_empty() {
                    &[][..]
                } else {
                    &[&*header]
                };
                let response = suite
                    .account
                    .send(
                        Credential::None,
                        &format!("{method} /{table}()"),
                        headers,
                        "",
                    )
                    .await;
                same(
                    format!("{method} {origin}"),
                    &(response.status, shown(&response)),
                    &(403, expected),
                )?;
                if !origin.is_empty() {
                    let is_allowed = preflight(suite, origin, method, "").await.status == 200;
                    same("by preflight", &is_allowed, &(expected[0] != "-"))?;
                }
            }
            Ok(())
        }
    );
    choice!(suite, "4.11 a request of another origin is carried out", {
        let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
        let response = suite
            .ask(
                &format!("POST /{table}"),
                &["Origin: http://elsewhere"],
                body,
            )
            .await;
        same(
            "outcome",
            &(response.status, shown(&response)),
            &(201, ["-"; 4]),
        )
    });
    limits(suite).await;
}

async fn limits(suite: &mut Suite) {
    let list = |count: usize, item: &str| {
        (0..count)
            .map(|index| format!("{item}{index}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    let (origins, headers, too_many) = (list(64, "a"), list(64, "h") + ",p*,q*", list(65, "a"));
    let (longest, too_long) = ("a".repeat(256), "a".repeat(257));
    let large = [&*longest; 8].join(",");
    let every = "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT";
    let invalid = (400, "InvalidXmlDocument");
    for (name, rules, expected) in [
        ("64 origins", &[(&*origins, "GET", "", "")][..], (202, "")),
        (
            "64 headers and 2 prefixes",
            &[("*", "GET", &headers, "")],
            (202, ""),
        ),
        (
            "256 characters",
            &[(&longest, "GET", "", &longest)],
            (202, ""),
        ),
        (
            "five rules with every method",
            &[("*", every, "", ""); 5],
            (202, ""),
        ),
        ("six rules", &[("*", "GET", "", ""); 6], invalid),
        ("no origin", &[("", "GET", "", "")], invalid),
        ("no method", &[("*", "", "", "")], invalid),
        ("an unknown method", &[("*", "BREW", "", "")], invalid),
        ("a method in lower case", &[("*", "get", "", "")], invalid),
        ("a star of methods", &[("*", "*", "", "")], invalid),
        ("65 origins", &[(&too_many, "GET", "", "")], invalid),
        (
            "an origin of 257 characters",
            &[(&too_long, "GET", "", "")],
            invalid,
        ),
        ("65 headers", &[("*", "GET", &too_many, "")], invalid),
        (
            "an exposed header of 257 characters",
            &[("*", "GET", "", &too_long)],
            invalid,
        ),
        ("three prefixes", &[("*", "GET", "a*,b*,c*", "")], invalid),
        (
            "three exposed prefixes",
            &[("*", "GET", "", "a*,b*,c*")],
            invalid,
        ),
        ("more than 2 KiB", &[("*", "GET", &large, "")], invalid),
    ] {
        choice!(suite, &format!("4.6 limits of CORS rules: {name}"), {
            set(suite, rules, expected).await
        });
    }
    choice!(suite, "4.6 an age is a number of 32 bits without a sign", {
        for age in ["-1", "", "+5", "4294967296", "1.5"] {
            let rule = rule(("*", "GET", "", "")).replace(">500<", &format!(">{age}<"));
            suite
                .expect(
                    PUT,
                    &[XML],
                    &properties(&format!("<Cors>{rule}</Cors>")),
                    invalid,
                )
                .await?;
        }
        Ok(())
    });
}
