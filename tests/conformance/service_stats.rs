//! Get Table Service Stats.

use crate::client::Credential;
use crate::run::{Suite, choice, holds, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    rule!(suite, "4.7 statistics of the secondary", {
        let target = format!("{}-secondary/?restype=service&comp=stats", suite.account.path);
        let response = suite.account.send_to(Credential::SharedKeyLite, "GET", &target, &["Accept: application/xml"], "").await;
        same("status", &response.status, &200)?;
        holds("0.1 a byte order mark", response.body.starts_with('\u{FEFF}'))?;
        holds(&response.body, response.body.contains("<GeoReplication><Status>live</Status><LastSyncTime>"))
    });
    choice!(suite, "1.1, 4.7 the secondary's path without a slash, and with the account", {
        let account = &suite.account;
        for path in [format!("{}-secondary", account.path), format!("{0}-secondary{0}/", account.path)] {
            let target = format!("{path}?restype=service&comp=stats");
            let response = account.send_to(Credential::SharedKeyLite, "GET", &target, &[], "").await;
            same(path, &response.status, &200)?;
        }
        Ok(())
    });
    choice!(suite, "4.7 the primary has none", {
        let response = suite.ask("GET /?restype=service&comp=stats", &["Accept: application/xml"], "").await;
        refused(&response, 400, "InvalidQueryParameterValue")
    });
}
