//! Orders: placed once, however often they are sent, and paid within half an hour or not at all.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tablesdk::{Error, TableClient, TableEntity, Timestamp};

/// An order of a customer, who is its partition: a customer's orders are read together.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, TableEntity)]
#[table(rename_all = "PascalCase")]
pub struct Order {
    #[serde(default)]
    #[table(partition_key)]
    pub customer: String,
    #[serde(default)]
    #[table(row_key)]
    pub id: String,
    pub product: String,
    pub cents: i64,
    #[serde(default)]
    pub is_paid: bool,
    /// Until when the order can be paid.
    #[serde(default)]
    pub payable_until: Option<Timestamp>,
}

/// Why an order is not placed or paid.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("there is another order with this id")]
    IdTaken,
    #[error("the order was not paid in time")]
    TooLate,
    #[error("it is not known whether the order was paid")]
    Unclear,
    #[error(transparent)]
    Table(#[from] Error),
}

/// Places an order. The client chooses its id, so that it can send the order again when a response
/// is lost.
pub async fn place(table: &TableClient, mut order: Order) -> Result<Order, Problem> {
    order.payable_until = Some(table.now().saturating_add(PAYABLE));
    let error = match table.insert(&order).await {
        Ok(stored) => return Ok(stored.into_inner()),
        Err(error) => error,
    };
    if !error.is_conflict() && !error.is_outcome_unknown() {
        return Err(error.into());
    }
    // An order is there: from this request, whose first response was lost, or from an earlier one.
    match table.get(Order::key(&order.customer, &order.id)).await? {
        Some(found) if is_same(&found, &order) => Ok(found.into_inner()),
        Some(_) => Err(Problem::IdTaken),
        None => Err(error.into()),
    }
}

fn is_same(one: &Order, other: &Order) -> bool {
    (&one.product, one.cents) == (&other.product, other.cents)
}

/// Pays an order, unless it is too late. An order that is paid already stays as it is.
pub async fn pay(table: &TableClient, customer: &str, id: &str) -> Result<Order, Problem> {
    let now = table.now();
    for _ in 0..ROUNDS {
        let paid = table.modify(Order::key(customer, id), |order| {
            if !order.is_paid && order.payable_until.is_none_or(|until| until < now) {
                return Err(Problem::TooLate.into());
            }
            order.is_paid = true;
            Ok(())
        });
        return match paid.await {
            Ok(order) => Ok(order.into_inner()),
            // Whether it was carried out or not: to pay a paid order changes nothing.
            Err(error) if error.is_outcome_unknown() => continue,
            Err(error) => match error.downcast_ref() {
                Some(Problem::TooLate) => Err(Problem::TooLate),
                _ => Err(error.into()),
            },
        };
    }
    Err(Problem::Unclear)
}

/// How often a payment of which the outcome is unknown is tried.
const ROUNDS: usize = 3;

/// How long an order can be paid.
const PAYABLE: Duration = Duration::from_secs(30 * 60);
