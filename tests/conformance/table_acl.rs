//! Get and Set Table ACL.

use crate::run::{Suite, choice, holds, refused, rule, same};

const XML: &str = "Content-Type: application/xml";
const ACCEPT: &str = "Accept: application/xml";

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    let line = format!("GET /{table}?comp=acl");
    let put = format!("PUT /{table}?comp=acl");
    rule!(suite, "4.4 no policies", {
        let response = suite.done(&line, &[ACCEPT], "").await?;
        same("Content-Type", &response.header("Content-Type"), &Some("application/xml"))?;
        holds("0.1 a byte order mark", response.body.starts_with('\u{FEFF}'))?;
        holds(&response.body, response.body.contains("<SignedIdentifiers />") || response.body.contains("<SignedIdentifiers/>"))
    });
    rule!(suite, "4.4, 4.5 policies come back, with seven digits of their times", {
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>policy-1</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2021-06-08T03:10:09.1230000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        same("status", &suite.done(&put, &[XML], body).await?.status, &204)?;
        let response = suite.done(&line, &[ACCEPT], "").await?;
        let expected = "<SignedIdentifiers><SignedIdentifier><Id>policy-1</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.1230000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        holds(&response.body, response.body.ends_with(expected))
    });
    rule!(suite, "4.4 a policy has only what it was given", {
        let body = "<SignedIdentifiers><SignedIdentifier><Id>none</Id></SignedIdentifier><SignedIdentifier><Id>empty</Id><AccessPolicy /></SignedIdentifier><SignedIdentifier><Id>part</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        suite.done(&put, &[XML], body).await?;
        let response = suite.done(&line, &[ACCEPT], "").await?;
        let expected = "<SignedIdentifiers><SignedIdentifier><Id>none</Id></SignedIdentifier><SignedIdentifier><Id>empty</Id></SignedIdentifier><SignedIdentifier><Id>part</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        holds(&response.body, response.body.ends_with(expected))
    });
    rule!(suite, "4.5 an empty body clears them", {
        suite.done(&put, &[XML], "").await?;
        same("identifiers", &suite.done(&line, &[ACCEPT], "").await?.body.matches("<SignedIdentifier>").count(), &0)
    });
    let six: Vec<_> = (0..6).map(|n| format!("<SignedIdentifier><Id>{n}</Id></SignedIdentifier>")).collect();
    let six = format!("<SignedIdentifiers>{}</SignedIdentifiers>", six.concat());
    rule!(suite, "4.5 six policies are refused, in XML, with the code in a header", {
        let response = suite.ask(&put, &[XML, ACCEPT], &six).await;
        refused(&response, 400, "InvalidXmlDocument")?;
        same("header", &response.header("x-ms-error-code"), &Some("InvalidXmlDocument"))?;
        holds(&response.body, response.body.contains("XML specified is not syntactically valid."))
    });
    let letter = "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy><Permission>x</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    suite.refusals(&table, &[
        ("4.5 what is no XML", "PUT /TABLE?comp=acl", &[XML], "<SignedIdentifiers>", 400, "InvalidXmlDocument"),
        ("4.4 a missing table", "GET /ConfMissing?comp=acl", &[ACCEPT], "", 404, "TableNotFound"),
    ]).await;
    choice!(suite, "4.5 a document that breaks a rule changes nothing", {
        let document = |content: &str| format!("<SignedIdentifiers>{content}</SignedIdentifiers>");
        let kept = document("<SignedIdentifier><Id>kept</Id></SignedIdentifier>");
        let put_upper = format!("PUT /{}?comp=acl", table.to_uppercase());
        suite.expect(&put_upper, &[XML], &kept, (204, "")).await?;
        for content in [
            &*document(&format!("<SignedIdentifier><Id>{}</Id></SignedIdentifier>", "x".repeat(65))),
            &document("<SignedIdentifier><Id>a</Id><AccessPolicy><Start>2021-06-08T02:05:09.123Z</Start></AccessPolicy></SignedIdentifier>"),
            "<!DOCTYPE x [<!ENTITY y 'z'>]><SignedIdentifiers />",
            "{}",
        ] {
            suite.expect(&put, &[XML], content, (400, "InvalidXmlDocument")).await?;
        }
        let response = suite.done(&line, &[ACCEPT], "").await?;
        holds(&response.body, response.body.ends_with(&kept))
    });
    choice!(suite, "4.5 a time may be a day", {
        let policy = |expiry: &str| format!("<SignedIdentifiers><SignedIdentifier><Id>day</Id><AccessPolicy><Expiry>{expiry}</Expiry></AccessPolicy></SignedIdentifier></SignedIdentifiers>");
        suite.done(&put, &[XML], &policy("2030-01-01")).await?;
        let response = suite.done(&line, &[ACCEPT], "").await?;
        holds(&response.body, response.body.ends_with(&policy("2030-01-01T00:00:00.0000000Z")))
    });
    suite.refusals_by_choice(&table, &[
        ("4.5 policies of a missing table", "PUT /ConfMissing?comp=acl", &[XML], "", 404, "TableNotFound"),
        ("1.2 policies of the account", "GET /?comp=acl", &[], "", 400, "InvalidQueryParameterValue"),
        ("1.2 policies of the set of tables", "GET /Tables?comp=acl", &[], "", 400, "InvalidQueryParameterValue"),
        ("1.2 an unknown component", "GET /TABLE?comp=acls", &[], "", 400, "InvalidQueryParameterValue"),
        ("4.5 a letter that is no permission", "PUT /TABLE?comp=acl", &[XML], letter, 400, "InvalidXmlDocument"),
        ("4.5 the same id twice", "PUT /TABLE?comp=acl", &[XML], "<SignedIdentifiers><SignedIdentifier><Id>x</Id></SignedIdentifier><SignedIdentifier><Id>x</Id></SignedIdentifier></SignedIdentifiers>", 400, "InvalidXmlDocument"),
    ]).await;
}
