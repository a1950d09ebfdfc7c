//! Get User Delegation Key. A token is not among the credentials of an endpoint: only refusals.

use crate::client::Credential;
use crate::run::{Suite, choice, refused};

pub(crate) async fn check(suite: &mut Suite) {
    choice!(suite, "D a user delegation key is for tokens alone", {
        let response = suite.ask(LINE, HEADERS, BODY).await;
        refused(&response, 403, "AuthenticationFailed")
    });
    choice!(suite, "D an older version has no user delegation key", {
        let headers = &["x-ms-version: 2019-02-02", "Accept: application/xml"];
        let response = suite.ask(LINE, headers, BODY).await;
        refused(&response, 400, "InvalidQueryParameterValue")
    });
    choice!(suite, "D a request for a user delegation key is a document", {
        for body in ["", "<KeyInfo />", "<KeyInfo><Expiry>soon</Expiry></KeyInfo>"] {
            let response = suite.ask(LINE, HEADERS, body).await;
            refused(&response, 400, "InvalidXmlDocument")?;
        }
        Ok(())
    });
    choice!(suite, "D a field of a user delegation SAS alone makes none", {
        let query = "sv=2025-07-05&tn=people&sp=r&se=2100-01-01&skoid=c9da6455-213d-42c9-9a79-3e9149a57833&sig=c2ln";
        let line = format!("GET /people()?{query}");
        let response = suite.account.send(Credential::None, &line, &["Accept: application/json"], "").await;
        refused(&response, 403, "AuthenticationFailed")
    });
}

const LINE: &str = "POST /?restype=service&comp=userdelegationkey";
const HEADERS: &[&str] = &["x-ms-version: 2025-07-05", "Accept: application/xml"];
const BODY: &str = "<KeyInfo><Expiry>2100-01-01T00:00:00Z</Expiry></KeyInfo>";
