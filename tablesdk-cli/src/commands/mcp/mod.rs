//! `tables mcp`: the account for agents, by the Model Context Protocol.

mod answer;
mod arguments;
mod first_request;
mod read;
mod server;
mod tools;
mod write;

use std::io::{self, IsTerminal as _};

use clap::Args;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tablesdk_cli::lines::MAX_LINE_BYTES;

use crate::account::{Account, built};
use crate::error::{AnyError, UsageError};
use crate::output::{Output, note};
use crate::requests;

use first_request::FromFirstRequest;
use server::{Rights, Server};

/// Serve the account to an agent, by the Model Context Protocol
///
/// The host of the agent starts this program, and talks to it over standard input and output.
/// The agent can list tables, look at the properties of a table, and read entities. Each
/// answer says how many requests were sent. It has at most 64 KiB of text, and says how to
/// read on where more was found.
///
/// The program ends with its input; requests that run then have 5 seconds. Messages for
/// people go to standard error.
#[derive(Args)]
#[command(after_help = CONFIGURATION, verbatim_doc_comment)]
pub(crate) struct Mcp {
    /// Let queries look at a whole table
    #[arg(long)]
    allow_scans: bool,
    /// Let the agent change single entities
    ///
    /// It can insert an entity, and replace, merge or delete one whose current ETag it
    /// passes. What the client of tablesdk keeps in step with other entities, such as
    /// entries of indexes, is not changed, and neither is a table with such entries.
    #[arg(long, verbatim_doc_comment)]
    write: bool,
    #[command(flatten)]
    account: Account,
}

impl Mcp {
    pub(crate) async fn run(self, output: &Output) -> Result<(), AnyError> {
        if output.has_form() {
            let problem = "mcp speaks its protocol on standard output: --output does not apply";
            return Err(UsageError(problem.into()).into());
        }
        let service = built(self.account.builder()?.on_operation(requests::count))?;
        let rights = Rights {
            scan: self.allow_scans,
            write: self.write,
        };
        note(&format!(
            "serves {} to an agent: {rights}",
            service.endpoint()
        ));
        if io::stdin().is_terminal() {
            note("this is for the host of an agent, which sends the messages of the protocol");
        }
        let transport = AsyncRwTransport::new_server(tokio::io::stdin(), tokio::io::stdout());
        // No entity is longer. What is longer is dropped.
        let transport = transport.with_max_line_length(MAX_LINE_BYTES);
        let server = Server::new(service, rights);
        match server.serve(FromFirstRequest::new(transport)).await {
            Ok(running) => {
                running.waiting().await?;
                Ok(())
            }
            // The input has ended.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

const CONFIGURATION: &str = r#"The configuration of the host has an entry such as this one:
  {"mcpServers": {"tables": {
    "command": "tables",
    "args": ["mcp"],
    "env": {"AZURE_STORAGE_CONNECTION_STRING": "…"}
  }}}
Secrets belong into "env": other users of this machine can see arguments."#;
