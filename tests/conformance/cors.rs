//! Preflights, and the CORS headers of other responses. Part of `service_properties`, which owns
//! the rules of the account.

use crate::client::{Credential, Response};
use crate::run::{self, Outcome, Suite, choice, holds, refused, same};
use crate::service_properties::{PUT, XML, properties};

/// Origins, methods, headers of requests and headers of responses.
type Rule<'a> = (&'a str, &'a str, &'a str, &'a str);

const XYZ: &str = "http://www.xyz.com";
const AB: &str = "http://www.ab.com";
const OTHER: &str = "http://other";

fn rule((origins, methods, headers, exposed): Rule<'_>) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{headers}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>"
    )
}

/// Sends rules for the account. The outcome has this status and code.
async fn put(suite: &Suite, rules: &str, expected: (u16, &str)) -> Outcome {
    let document = properties(&format!("<Cors>{rules}</Cors>"));
    suite.expect(PUT, &[XML], &document, expected).await
}

/// Sets the rules of the account.
async fn set(suite: &Suite, rules: &[Rule<'_>]) -> Outcome {
    let rules: String = rules.iter().map(|given| rule(*given)).collect();
    put(suite, &rules, (202, "")).await
}

/// Sends a request with an origin. An empty string stands for a header that is absent.
async fn send(suite: &Suite, credential: Credential, line: &str, origin: &str) -> Response {
    let header = format!("Origin: {origin}");
    let headers = [&*header];
    let headers = if origin.is_empty() { &[] } else { &headers[..] };
    suite.account.send(credential, line, headers, "").await
}

/// Sends a preflight without a credential. An empty string stands for a header that is absent.
async fn preflight(suite: &Suite, origin: &str, method: &str, headers: &str) -> Response {
    let lines = [
        ("Origin", origin),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", headers),
    ];
    let lines = lines.map(|(name, value)| format!("{name}: {value}"));
    let lines = lines.iter().map(String::as_str);
    let lines: Vec<_> = lines.filter(|line| !line.ends_with(": ")).collect();
    let (account, line) = (&suite.account, "OPTIONS /ConfTable");
    account.send(Credential::None, line, &lines, "").await
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

const NOTHING: [&str; 4] = ["-"; 4];
const EXACT: [&str; 4] = [XYZ, "true", "-", "Origin"];

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let get = format!("GET /{table}()");
    let title = "4.11 a preflight uses the first rule that allows all of it";
    choice!(suite, title, {
        let both = format!("{AB},{XYZ}");
        let headers = "x-ms-meta-data*,x-ms-meta-xyz";
        let rules = [(AB, "GET", "", ""), (&both, "GET,PUT", headers, "x-*")];
        set(suite, &rules).await?;
        let failure = (403, "CorsPreflightFailure");
        for (origin, method, headers, (status, code)) in [
            (XYZ, "GET", "x-ms-meta-xyz", (200, "")),
            (XYZ, "PUT", "", (200, "")),
            (XYZ, "GET", "X-MS-META-DATA, x-ms-meta-data-2,,", (200, "")),
            // The first rule does not allow headers, but the second one does.
            (AB, "GET", "x-ms-meta-xyz", (200, "")),
            (AB, "GET", "x-ms-meta-xyz2", failure),
            (XYZ, "GET", "x-ms-meta-xyz, x-other", failure),
            (XYZ, "GET", "x-ms-meta-dat", failure),
            (XYZ, "DELETE", "", failure),
            (XYZ, "get", "", failure),
            ("http://www.XYZ.com", "GET", "", failure),
            ("https://www.xyz.com", "GET", "", failure),
            ("http://www.xyz.com:80", "GET", "", failure),
            ("null", "GET", "", failure),
        ] {
            let response = preflight(suite, origin, method, headers).await;
            let what = format!("{origin} {method} {headers}");
            refused(&response, status, code).map_err(|why| format!("{what}: {why}"))?;
            let allowed = [origin, "true", "-", "-"];
            let expected = if status == 200 { allowed } else { NOTHING };
            same(what, &shown(&response), &expected)?;
            let message = "CORS not enabled or no matching rule found for this request.";
            let found = (response.body.contains(message), response.body.is_empty());
            same("body", &found, &(status == 403, status == 200))?;
        }
        Ok(())
    });
    choice!(suite, "4.11 a star allows everything of its kind", {
        set(suite, &[("*", "MERGE,OPTIONS", "*", "*")]).await?;
        let headers = "authorization,x-anything";
        let response = preflight(suite, XYZ, "MERGE", headers).await;
        let allowed = response.header("Access-Control-Allow-Headers");
        same("headers", &allowed, &Some(headers))?;
        let methods = response.header("Access-Control-Allow-Methods");
        same("methods", &methods, &Some("MERGE"))?;
        same("shown", &shown(&response), &[XYZ, "true", "-", "-"])
    });
    choice!(suite, "4.11 a preflight has an origin and a method", {
        set(suite, &[("*", "GET", "*", "")]).await?;
        for (origin, method) in [(XYZ, ""), ("", "GET")] {
            let response = preflight(suite, origin, method, "").await;
            refused(&response, 400, "InvalidHeaderValue")?;
            let message = "A required CORS header is not present.";
            holds(&response.body, response.body.contains(message))?;
        }
        // Without both it is no preflight, and needs a credential.
        let response = preflight(suite, "", "", "x-ms-date").await;
        refused(&response, 403, "AuthenticationFailed")?;
        let (options, expected) = (format!("OPTIONS /{table}"), (405, "MethodNotAllowed"));
        suite.expect(&options, &[], "", expected).await
    });
    let title = "4.11 an account has its rules under its host and at its secondary";
    choice!(suite, title, {
        let account = &suite.account;
        let host = format!("Host: {}.table.localhost", account.name);
        let own = format!("Host: {}", account.authority);
        let secondary = format!("{}-secondary/ConfTable", account.path);
        for (host, target, status, code) in [
            (&host, "/ConfTable", 200, ""),
            (&own, &secondary, 200, ""),
            (&own, "/unknown/ConfTable", 404, "ResourceNotFound"),
        ] {
            let origin = "Origin: http://www.xyz.com";
            let headers = [host, origin, "Access-Control-Request-Method: GET"];
            let response = account.send_to(Credential::None, "OPTIONS", target, &headers, "");
            refused(&response.await, status, code)?;
        }
        Ok(())
    });
    let title = "4.11 responses and errors are shown to the origins of a rule";
    choice!(suite, title, {
        let exposed = "x-ms-request-id,x-ms-c*,Custom";
        let rules = [(AB, "GET,POST", "", ""), (XYZ, "GET,DELETE", "", exposed)];
        set(suite, &rules).await?;
        let headers = ["Origin: http://www.xyz.com", "x-ms-client-request-id: 1"];
        let exposed = "x-ms-request-id,x-ms-client-request-id,Custom";
        for (line, status) in [
            (&*get, 200),
            ("GET /ConfMissing()", 404),
            ("DELETE /Tables('ConfMissing')", 404),
        ] {
            let response = suite.ask(line, &headers, "").await;
            let found = (response.status, shown(&response));
            same(line, &found, &(status, [XYZ, "true", exposed, "Origin"]))?;
        }
        let response = send(suite, Credential::SharedKey, &get, AB).await;
        let expected = [AB, "true", "-", "Origin"];
        same("nothing exposed", &shown(&response), &expected)
    });
    let title = "4.11 a response has Vary if another origin would change it";
    choice!(suite, title, {
        let (varies, all) = (["-", "-", "-", "Origin"], ["*", "-", "-", "-"]);
        let one: &[Rule<'_>] = &[(XYZ, "GET,PUT", "", "")];
        let every: &[Rule<'_>] = &[("*", "GET,PUT", "", "")];
        let both: &[Rule<'_>] = &[one[0], every[0]];
        for (rules, method, origin, expected) in [
            (one, "GET", "", varies),
            (one, "GET", XYZ, EXACT),
            (one, "GET", OTHER, varies),
            (one, "HEAD", "", varies),
            (one, "PUT", "", NOTHING),
            (one, "PUT", XYZ, EXACT),
            (one, "PUT", OTHER, NOTHING),
            (every, "GET", "", NOTHING),
            (every, "GET", XYZ, all),
            (every, "PUT", XYZ, all),
            (every, "HEAD", XYZ, NOTHING),
            (both, "GET", "", varies),
            (both, "GET", XYZ, EXACT),
            (both, "GET", OTHER, all),
        ] {
            set(suite, rules).await?;
            let line = format!("{method} /{table}?comp=acl");
            let response = send(suite, Credential::SharedKey, &line, origin).await;
            let what = format!("{rules:?} {method} {origin}");
            let found = (response.status < 300, shown(&response));
            same(what, &found, &(true, expected))?;
        }
        Ok(())
    });
    let title = "4.11 without a credential, responses show no more than a preflight";
    choice!(suite, title, {
        set(suite, &[(XYZ, "GET", "", "")]).await?;
        for (method, origin, expected) in [
            ("GET", XYZ, EXACT),
            ("PUT", XYZ, NOTHING),
            ("GET", OTHER, NOTHING),
            // A request without an origin is not from a page.
            ("GET", "", NOTHING),
            ("HEAD", "", NOTHING),
        ] {
            let line = format!("{method} /{table}()");
            let response = send(suite, Credential::None, &line, origin).await;
            let found = (response.status, shown(&response));
            same(format!("{method} {origin}"), &found, &(403, expected))?;
            if !origin.is_empty() {
                let is_allowed = preflight(suite, origin, method, "").await.status == 200;
                same("by preflight", &is_allowed, &(expected == EXACT))?;
            }
        }
        Ok(())
    });
    choice!(suite, "4.11 a request of another origin is carried out", {
        let (line, body) = (
            format!("POST /{table}"),
            r#"{"PartitionKey":"p","RowKey":"r"}"#,
        );
        let response = suite.ask(&line, &["Origin: http://other"], body).await;
        let found = (response.status, shown(&response));
        same("outcome", &found, &(201, NOTHING))
    });
    limits(suite).await;
}

async fn limits(suite: &mut Suite) {
    let list = |count: usize, item: &str| -> String {
        let items: Vec<_> = (0..count).map(|index| format!("{item}{index}")).collect();
        items.join(",")
    };
    let (origins, headers, too_many) = (list(64, "a"), list(64, "h") + ",p*,q*", list(65, "a"));
    let (longest, too_long) = ("a".repeat(256), "a".repeat(257));
    let large = [&*longest; 8].join(",");
    let every = "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT";
    for (name, count, rule_of_it, is_valid) in [
        ("64 origins", 1, (&*origins, "GET", "", ""), true),
        (
            "64 headers, 2 prefixes",
            1,
            ("*", "GET", &*headers, ""),
            true,
        ),
        ("256 characters", 1, (&longest, "GET", "", &*longest), true),
        ("five rules of every method", 5, ("*", every, "", ""), true),
        ("six rules", 6, ("*", "GET", "", ""), false),
        ("no origin", 1, ("", "GET", "", ""), false),
        ("no method", 1, ("*", "", "", ""), false),
        ("an unknown method", 1, ("*", "BREW", "", ""), false),
        ("a method in lower case", 1, ("*", "get", "", ""), false),
        ("a star of methods", 1, ("*", "*", "", ""), false),
        ("65 origins", 1, (&too_many, "GET", "", ""), false),
        ("a long origin", 1, (&too_long, "GET", "", ""), false),
        ("65 headers", 1, ("*", "GET", &too_many, ""), false),
        (
            "a long exposed header",
            1,
            ("*", "GET", "", &too_long),
            false,
        ),
        ("three prefixes", 1, ("*", "GET", "a*,b*,c*", ""), false),
        (
            "three exposed prefixes",
            1,
            ("*", "GET", "", "a*,b*,c*"),
            false,
        ),
        ("more than 2 KiB", 1, ("*", "GET", &large, ""), false),
    ] {
        choice!(suite, &format!("4.6 limits of CORS rules: {name}"), {
            let expected = match (is_valid, name) {
                (true, _) => (202, ""),
                (false, "six rules" | "more than 2 KiB") => (400, "InvalidXmlDocument"),
                (false, _) => (400, "InvalidXmlNodeValue"),
            };
            put(suite, &rule(rule_of_it).repeat(count), expected).await
        });
    }
    for (name, given) in [
        ("65 origins", (&*too_many, "GET", "", "")),
        ("65 headers", ("*", "GET", &*too_many, "")),
        ("three prefixes", ("*", "GET", "a*,b*,c*", "")),
    ] {
        run::rule!(suite, &format!("F.14 {name} are an invalid value"), {
            put(suite, &rule(given), (400, "InvalidXmlNodeValue")).await
        });
    }
    run::rule!(suite, "F.14 six rules are an invalid document", {
        let six = rule(("*", "GET", "", "")).repeat(6);
        put(suite, &six, (400, "InvalidXmlDocument")).await
    });
    choice!(suite, "4.6 an age is a number of 32 bits without a sign", {
        for age in ["-1", "", "+5", "4294967296", "1.5"] {
            let rule = rule(("*", "GET", "", "")).replace(">500<", &format!(">{age}<"));
            put(suite, &rule, (400, "InvalidXmlDocument")).await?;
        }
        Ok(())
    });
}
