//! Requests into which a test injects faults: whether and when they are carried out, and what their clients get.
//!
//! The fault itself decides what becomes of the response that this module returns.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::ServiceError;
use tablesdk_protocol::operation::Operation;
use tokio::time::Instant;

use super::Service;
use super::handler::{Handled, handle};
use crate::request::auth::Principal;
use crate::request::context::Context;
use crate::testing::{Application, Cleared, Detached, InFlight, Observed, Reaction};
use crate::time::time_limit::within;

/// Carries out a request with its fault, if it has one. Returns the response as it would be without the fault, an injected error, or an
/// empty response that is not sent.
pub(super) async fn carry_out(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
    observed: &mut Observed,
) -> Handled {
    let Some((application, reaction, cleared)) = observed.fault() else {
        return Ok(once(service, context, principal, operation).await?);
    };
    let mut waiting = Waiting(cleared, observed.in_flight());
    let handled = match application {
        Application::Never => None,
        Application::Once => {
            let result = once(service, context, principal, operation).await;
            if matches!(reaction, Reaction::Error { .. }) {
                observed
                    .detached()
                    .carried_out(&result, service.clock.now());
            } else {
                observed.carried_out(&result);
            }
            Some(result)
        }
        Application::Twice => {
            let first = once(service, context, principal, operation).await;
            observed.detached().carried_out(&first, service.clock.now());
            Some(once(service, context, principal, operation).await)
        }
        Application::Again(delay) => {
            let handled = once(service, context, principal, operation).await;
            later(
                service,
                context,
                principal,
                operation,
                delay,
                observed.detached(),
            );
            Some(handled)
        }
        Application::After(delay) if matches!(reaction, Reaction::Response(_)) => {
            waiting.pause(delay).await;
            Some(once(service, context, principal, operation).await)
        }
        Application::After(delay) => {
            let detached = observed.detached();
            later(service, context, principal, operation, delay, detached);
            None
        }
    };
    match reaction {
        Reaction::Response(delay) => waiting.pause(delay).await,
        Reaction::Error { code, .. } => return Err(code.into()),
        Reaction::Silence => waiting.until_ended().await,
        Reaction::Corrupted | Reaction::Reset | Reaction::Truncated(_) => {}
    }
    match handled {
        Some(result) => Ok(result?),
        None => {
            observed.has_no_response();
            Ok(Response::default())
        }
    }
}

async fn once(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
) -> Result<Response<Bytes>, ServiceError> {
    let handled = pin!(handle(&service.engine, context, principal, operation));
    let handled = within(context.timeout, service.timer, Instant::now(), handled).await;
    handled.map_err(|error| error.report(context))
}

/// Carries out an operation after its client has got a response or none, unless the server is reset before.
fn later(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
    delay: Duration,
    mut detached: Detached,
) {
    let (clock, engine) = (Arc::clone(&service.clock), Arc::clone(&service.engine));
    let (context, principal, operation) = (context.clone(), principal.clone(), operation.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = detached.drained() => return,
        }
        let handled = handle(&engine, &context, &principal, &operation).await;
        let handled = handled.map_err(|error| error.report(&context));
        detached.carried_out(&handled, clock.now());
    });
}

/// The waits of a fault. They end when the rules are cleared, or the server is reset.
struct Waiting(Cleared, InFlight);

impl Waiting {
    async fn pause(&mut self, delay: Duration) {
        if !delay.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.until_ended() => {}
            }
        }
    }

    async fn until_ended(&mut self) {
        tokio::select! {
            () = self.0.wait() => {}
            () = self.1.drained() => {}
        }
    }
}
