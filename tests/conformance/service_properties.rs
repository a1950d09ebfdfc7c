//! Get and Set Table Service Properties, and what CORS rules do.

use crate::client::Credential;
use crate::cors;
use crate::run::{Suite, choice, holds, refused, rule, same};

pub(crate) const XML: &str = "Content-Type: application/xml";
const ACCEPT: &str = "Accept: application/xml";
const GET: &str = "GET /?restype=service&comp=properties";
pub(crate) const PUT: &str = "PUT /?restype=service&comp=properties";

pub(crate) fn properties(content: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>{content}</StorageServiceProperties>")
}

pub(crate) async fn check(suite: &mut Suite) {
    // They belong to the account, so that they are put back in the end.
    let before = suite.ask(GET, &[ACCEPT], "").await.body;
    rule!(suite, "4.6 properties are there without ever being set", {
        let response = suite.done(GET, &[ACCEPT], "").await?;
        same("Content-Type", &response.header("Content-Type"), &Some("application/xml"))?;
        holds("0.1 a byte order mark", response.body.starts_with('\u{FEFF}'))?;
        for element in ["<Logging>", "<HourMetrics>", "<MinuteMetrics>", "<Cors"] {
            holds(element, response.body.contains(element))?;
        }
        Ok(())
    });
    choice!(suite, "4.6 an account that is new keeps hourly metrics for a week, and nothing else", {
        let response = suite.done(GET, &[ACCEPT], "").await?;
        let off = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
        let logging = format!("<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>{off}</Logging>");
        let hours = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>";
        let minutes = format!("<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{off}</MinuteMetrics>");
        holds(&response.body, response.body.contains(&format!("{logging}{hours}{minutes}<Cors />")))
    });
    let logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
    let cors = |origin: &str| format!("<Cors><CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-meta-data*,x-ms-date</AllowedHeaders><ExposedHeaders>x-ms-request-id</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>");
    rule!(suite, "4.6 what is set comes back, and what is left out stays", {
        same("status", &suite.ask(PUT, &[XML], &properties(logging)).await.status, &202)?;
        same("status", &suite.ask(PUT, &[XML], &properties(&cors("http://www.xyz.com"))).await.status, &202)?;
        let response = suite.done(GET, &[ACCEPT], "").await?;
        holds(&response.body, response.body.contains("<Days>5</Days>"))?;
        holds(&response.body, response.body.contains("<AllowedOrigins>http://www.xyz.com</AllowedOrigins>"))
    });
    for (rule, headers, status) in [
        ("4.11 a preflight that a rule allows", &["Origin: http://www.xyz.com", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-ms-date,x-ms-meta-data1"][..], 200),
        ("4.11 a preflight of another origin", &["Origin: http://other.com", "Access-Control-Request-Method: GET"], 403),
        ("4.11 a preflight of another method", &["Origin: http://www.xyz.com", "Access-Control-Request-Method: DELETE"], 403),
        ("4.11 a preflight of another header", &["Origin: http://www.xyz.com", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-other"], 403),
        ("4.11 a preflight without an origin", &["Access-Control-Request-Method: GET"], 400),
    ] {
        rule!(suite, rule, {
            let response = suite.account.send(Credential::None, "OPTIONS /Tables", headers, "").await;
            same("status", &response.status, &status)?;
            if status == 200 {
                same("origin", &response.header("Access-Control-Allow-Origin"), &Some("http://www.xyz.com"))?;
                same("method", &response.header("Access-Control-Allow-Methods"), &Some("GET"))?;
                same("age", &response.header("Access-Control-Max-Age"), &Some("500"))?;
            }
            Ok(())
        });
    }
    rule!(suite, "4.11 a response names the origin that may read it", {
        let response = suite.done("GET /Tables?$top=1", &["Origin: http://www.xyz.com"], "").await?;
        same("origin", &response.header("Access-Control-Allow-Origin"), &Some("http://www.xyz.com"))?;
        same("credentials", &response.header("Access-Control-Allow-Credentials"), &Some("true"))?;
        same("vary", &response.header("Vary"), &Some("Origin"))
    });
    rule!(suite, "2.4, 4.11 a response varies by origin once there are rules", {
        let response = suite.done("GET /Tables?$top=1", &[], "").await?;
        same("vary", &response.header("Vary"), &Some("Origin"))?;
        same("origin", &response.header("Access-Control-Allow-Origin"), &None::<&str>)
    });
    rule!(suite, "4.11 a rule for every origin", {
        suite.done(PUT, &[XML], &properties(&cors("*"))).await?;
        let response = suite.done("GET /Tables?$top=1", &["Origin: http://any.com"], "").await?;
        same("origin", &response.header("Access-Control-Allow-Origin"), &Some("*"))
    });
    rule!(suite, "4.11 a rule for every origin allows no credentials", {
        let response = suite.done("GET /Tables?$top=1", &["Origin: http://any.com"], "").await?;
        same("credentials", &response.header("Access-Control-Allow-Credentials"), &None::<&str>)
    });
    rule!(suite, "4.11 the first rule that matches counts", {
        let one = |origin: &str, method: &str, age: u32| {
            let rule = cors(origin).replace("GET,PUT", method).replace(">500<", &format!(">{age}<"));
            rule.replace("<Cors>", "").replace("</Cors>", "")
        };
        let rules = one("http://a.com", "PUT", 1) + &one("http://a.com", "GET", 2) + &one("*", "GET", 3);
        suite.done(PUT, &[XML], &properties(&format!("<Cors>{rules}</Cors>"))).await?;
        for (origin, age) in [("http://a.com", "2"), ("http://b.com", "3")] {
            let origin = format!("Origin: {origin}");
            let headers = [&*origin, "Access-Control-Request-Method: GET"];
            let response = suite.account.send(Credential::None, "OPTIONS /Tables", &headers, "").await;
            same("age", &response.header("Access-Control-Max-Age"), &Some(age))?;
        }
        Ok(())
    });
    rule!(suite, "4.6 an empty element clears the rules", {
        suite.done(PUT, &[XML], &properties("<Cors />")).await?;
        same("rules", &suite.done(GET, &[ACCEPT], "").await?.body.matches("<CorsRule>").count(), &0)
    });
    let days = |days: u32| properties(&logging.replace("<Days>5<", &format!("<Days>{days}<")));
    let six = cors("a").replace("<Cors>", "").replace("</Cors>", "").repeat(6);
    rule!(suite, "4.6 366 days, and six rules", {
        for body in [days(366), properties(&format!("<Cors>{six}</Cors>"))] {
            let response = suite.ask(PUT, &[XML], &body).await;
            refused(&response, 400, "InvalidXmlDocument")?;
            same("header", &response.header("x-ms-error-code"), &Some("InvalidXmlDocument"))?;
        }
        Ok(())
    });
    for (rule, body) in [
        ("a rule without an age", cors("a").replace("<MaxAgeInSeconds>500</MaxAgeInSeconds>", "")),
        ("a rule with a negative age", cors("a").replace(">500<", ">-5<")),
        ("a rule for an unknown method", cors("a").replace(">GET,PUT<", ">FETCH<")),
        ("retention without days", logging.replace("<Days>5</Days>", "")),
        ("retention for no day", logging.replace("<Days>5<", "<Days>0<")),
        ("what is no XML", "<".to_owned()),
    ] {
        rule!(suite, &format!("4.6 {rule} is refused"), {
            same("status", &suite.ask(PUT, &[XML], &properties(&body)).await.status, &400)
        });
    }
    choice!(suite, "4.6 a document that breaks a rule changes nothing", {
        let before = suite.done(GET, &[ACCEPT], "").await?.body;
        let invalid = (400, "InvalidXmlDocument");
        for body in ["<HourMetrics><Enabled>true</Enabled></HourMetrics>", &cors("a").replace("<CorsRule>", "").replace("</CorsRule>", "")] {
            suite.expect(PUT, &[XML], &properties(body), invalid).await?;
        }
        suite.expect(PUT, &[XML], "", invalid).await?;
        // A document without content is valid, and changes nothing either.
        suite.expect(PUT, &[XML], &properties(""), (202, "")).await?;
        same("properties", &suite.done(GET, &[ACCEPT], "").await?.body, &before)
    });
    suite.refusals_by_choice("", &[
        ("1.2 properties of an unnamed resource", "GET /?comp=properties", &[], "", 400, "InvalidQueryParameterValue"),
        ("1.2 a service without a component", "GET /?restype=service", &[], "", 400, "InvalidQueryParameterValue"),
    ]).await;
    cors::check(suite).await;
    choice!(suite, "4.6 metrics without IncludeAPIs", {
        let body = properties("<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>");
        same("status", &suite.ask(PUT, &[XML], &body).await.status, &400)
    });
    suite.ask(PUT, &[XML], before.trim_start_matches('\u{FEFF}')).await;
}
