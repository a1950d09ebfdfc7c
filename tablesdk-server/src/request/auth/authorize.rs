//! The permissions of a principal, according to the service's permission tables.
//!
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/create-account-sas#account-sas-permissions-by-operation>
//! and
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas#permissions-for-a-table>.

use http::request::Parts;
use http::{Method, header};
use tablesdk_protocol::auth::sas::{AccountPermissions, Permissions, ResourceTypes, SasKeyRange};
use tablesdk_protocol::header::X_HTTP_METHOD;
use tablesdk_protocol::operation::{Operation, QueryOptions, batch, get_entity, update_entity};
use tablesdk_protocol::{EntityKey, ErrorCode, ResourcePath, ServiceError, TableName};

use super::delegation::TokenUser;
use super::{Principal, TokenAction};
use crate::flavor::Flavor;

/// The requirements of an operation for each kind of credential.
#[derive(Debug)]
struct Requirements {
    /// An account SAS needs one of these resource types…
    types: ResourceTypes,
    /// … and all the permissions of one of these sets.
    account: &'static [AccountPermissions],
    /// A table SAS needs all these permissions. It never permits an operation that is not on the
    /// entities of its table.
    table: Permissions,
    /// A token needs all these actions.
    token: &'static [TokenAction],
}

const CREATE_TABLE: Requirements = Requirements {
    types: ResourceTypes::CONTAINER,
    account: &[AccountPermissions::CREATE, AccountPermissions::WRITE],
    table: Permissions::empty(),
    token: &[TokenAction::CreateTables],
};
const DELETE_TABLE: Requirements = Requirements {
    types: ResourceTypes::CONTAINER,
    account: &[AccountPermissions::DELETE],
    // Only in a flavor in which a table SAS permits it at all.
    table: Permissions::DELETE,
    token: &[TokenAction::DeleteTables],
};
const READ_TABLES: Requirements = Requirements {
    types: ResourceTypes::CONTAINER,
    account: &[AccountPermissions::LIST],
    table: Permissions::empty(),
    token: &[TokenAction::ReadTables],
};
const READ_SERVICE: Requirements = Requirements {
    types: ResourceTypes::SERVICE,
    account: &[AccountPermissions::READ],
    table: Permissions::empty(),
    token: &[TokenAction::ReadService],
};
const WRITE_SERVICE: Requirements = Requirements {
    types: ResourceTypes::SERVICE,
    account: &[AccountPermissions::WRITE],
    table: Permissions::empty(),
    token: &[TokenAction::WriteService],
};
const READ_ENTITIES: Requirements = Requirements {
    types: ResourceTypes::OBJECT,
    account: &[AccountPermissions::READ],
    table: Permissions::READ,
    token: &[TokenAction::ReadEntities],
};
const INSERT: Requirements = Requirements {
    types: ResourceTypes::OBJECT,
    account: &[AccountPermissions::ADD],
    table: Permissions::ADD,
    token: &[TokenAction::AddEntities],
};
const UPDATE: Requirements = Requirements {
    types: ResourceTypes::OBJECT,
    account: &[AccountPermissions::UPDATE],
    table: Permissions::UPDATE,
    token: &[TokenAction::UpdateEntities],
};
const UPSERT: Requirements = Requirements {
    types: ResourceTypes::OBJECT,
    account: &[AccountPermissions::ADD.union(AccountPermissions::UPDATE)],
    table: Permissions::ADD.union(Permissions::UPDATE),
    token: &[TokenAction::AddEntities, TokenAction::UpdateEntities],
};
const DELETE: Requirements = Requirements {
    types: ResourceTypes::OBJECT,
    account: &[AccountPermissions::DELETE],
    table: Permissions::DELETE,
    token: &[TokenAction::DeleteEntities],
};

/// A write of one entity, as far as permissions depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    table: &'a TableName,
    /// `None` if the key is in a body that is not read yet. Then the write must be authorized again
    /// with its key.
    key: Option<&'a EntityKey>,
    requirements: &'static Requirements,
}

impl<'a> Write<'a> {
    /// An insert.
    pub(crate) const fn insert(table: &'a TableName, key: Option<&'a EntityKey>) -> Self {
        Self {
            table,
            key,
            requirements: &INSERT,
        }
    }

    const fn delete(table: &'a TableName, key: &'a EntityKey) -> Self {
        Self {
            table,
            key: Some(key),
            requirements: &DELETE,
        }
    }

    const fn update(
        flavor: Flavor,
        table: &'a TableName,
        key: &'a EntityKey,
        is_conditional: bool,
    ) -> Self {
        Self {
            table,
            key: Some(key),
            requirements: if is_conditional || !flavor.upserts_add() {
                &UPDATE
            } else {
                &UPSERT
            },
        }
    }

    const fn of_update(flavor: Flavor, request: &'a update_entity::Request) -> Self {
        let is_conditional = request.if_match.is_some();
        Self::update(flavor, &request.table, &request.key, is_conditional)
    }

    /// A change of a batch. `key` is its key, if that is known.
    pub(crate) const fn of_change(
        flavor: Flavor,
        change: &'a batch::Change,
        key: Option<&'a EntityKey>,
    ) -> Self {
        match change {
            batch::Change::Delete(request) => Self::delete(&request.table, &request.key),
            batch::Change::Insert(request) => Self::insert(&request.table, key),
            batch::Change::Update(request) => Self::of_update(flavor, request),
        }
    }
}

impl Principal {
    /// Checks that a write is permitted: the operation of a request, or a change of a batch.
    ///
    /// # Errors
    ///
    /// `AuthorizationPermissionMismatch` or `AuthorizationResourceTypeMismatch` for what the
    /// credential lacks; `AuthorizationFailure` for an entity that it does not cover.
    pub(crate) fn authorize(&self, write: &Write<'_>) -> Result<(), ServiceError> {
        self.require(write.requirements, Some(write.table))?;
        match (self.keys(), write.key) {
            (Some(keys), Some(key)) if !keys.contains(key) => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that an operation is permitted. A query is limited by [`Principal::keys`], too. An
    /// insert, and each change of a batch, needs [`Principal::authorize`] once its body is read.
    ///
    /// # Errors
    ///
    /// As for a write; `ResourceNotFound` for an entity that a signature does not cover.
    pub(crate) fn authorize_operation(
        &self,
        flavor: Flavor,
        operation: &Operation,
    ) -> Result<(), ServiceError> {
        match operation {
            // Each operation of a batch, and the issue of a key, is authorized where it is carried
            // out.
            Operation::Batch(_) | Operation::GetUserDelegationKey(_) => Ok(()),
            Operation::CreateTable(_) => self.require(&CREATE_TABLE, None),
            Operation::DeleteEntity(request) => {
                self.authorize(&Write::delete(&request.table, &request.key))
            }
            Operation::DeleteTable(request) => {
                let table = flavor.table_sas_deletes_table().then_some(&request.name);
                self.require(&DELETE_TABLE, table)
            }
            Operation::GetEntity(request) => self.authorize_get(request),
            Operation::GetMetadata(_)
            | Operation::GetServiceProperties(_)
            | Operation::GetServiceStats(_) => self.require(&READ_SERVICE, None),
            Operation::GetTable(_) | Operation::QueryTables(_) => self.require(&READ_TABLES, None),
            Operation::InsertEntity(request) => {
                self.authorize(&Write::insert(&request.table, None))
            }
            Operation::Misplaced(table, _) => self.authorize_read(table),
            Operation::QueryEntities(request) => self.authorize_read(&request.table),
            Operation::SetServiceProperties(_) => self.require(&WRITE_SERVICE, None),
            Operation::UpdateEntity(request) => self.authorize(&Write::of_update(flavor, request)),
            // Among them are stored access policies: a signature must not change those that limit
            // it, and the authentication of tokens refuses them.
            _ if *self == Self::Account => Ok(()),
            _ => Err(ErrorCode::AuthorizationFailure.into()),
        }
    }

    /// Refuses a request if its head shows that it is not permitted, so that its body need not be
    /// read. Other requests are not permitted yet: they need [`Principal::authorize_operation`].
    ///
    /// # Errors
    ///
    /// As for an operation.
    pub(crate) fn authorize_head(
        &self,
        flavor: Flavor,
        head: &Parts,
        resource: &ResourcePath,
        options: &QueryOptions,
    ) -> Result<(), ServiceError> {
        let method = match head.headers.get(X_HTTP_METHOD) {
            Some(tunnelled) if head.method == Method::POST => tunnelled.as_bytes(),
            // Refused as malformed, for every principal.
            Some(_) => return Ok(()),
            None => head.method.as_str().as_bytes(),
        };
        match (resource, options.get("comp"), method) {
            (ResourcePath::Service, Some("properties"), b"PUT") => {
                self.require(&WRITE_SERVICE, None)
            }
            (ResourcePath::EntitySet(_), Some("acl"), b"PUT") if *self != Self::Account => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            (ResourcePath::Tables, None, b"POST") => self.require(&CREATE_TABLE, None),
            (ResourcePath::EntitySet(table), None, b"POST") => {
                self.authorize(&Write::insert(table, None))
            }
            (ResourcePath::Entity(table, key), None, b"PUT" | b"MERGE" | b"PATCH") => {
                let is_conditional = head.headers.contains_key(header::IF_MATCH);
                self.authorize(&Write::update(flavor, table, key, is_conditional))
            }
            _ => Ok(()),
        }
    }

    /// The user that its token names.
    pub(super) const fn token_user(&self) -> Option<TokenUser> {
        match self {
            Self::Token(grant) => grant.user(),
            Self::Account | Self::AccountSas(_) | Self::TableSas(_) => None,
        }
    }

    /// The keys of the entities that it sees; `None` for all.
    pub(crate) fn keys(&self) -> Option<&SasKeyRange> {
        match self {
            Self::TableSas(grant) => Some(&grant.keys),
            Self::Account | Self::AccountSas(_) | Self::Token(_) => None,
        }
    }

    /// Checks that an entity may be read.
    ///
    /// # Errors
    ///
    /// As for an operation.
    pub(crate) fn authorize_get(&self, request: &get_entity::Request) -> Result<(), ServiceError> {
        self.authorize_read(&request.table)?;
        // SERVICE: here it is not found, where a write is refused.
        match self.keys() {
            Some(keys) if !keys.contains(&request.key) => Err(ErrorCode::ResourceNotFound.into()),
            _ => Ok(()),
        }
    }

    /// Checks that a table may be queried. [`Principal::keys`] returns the range of keys that the
    /// principal may see.
    ///
    /// # Errors
    ///
    /// As for an operation.
    pub(crate) fn authorize_read(&self, table: &TableName) -> Result<(), ServiceError> {
        self.require(&READ_ENTITIES, Some(table))
    }

    /// Checks that the principal meets the requirements of an operation on the entities of a table,
    /// or on something else.
    fn require(
        &self,
        requirements: &Requirements,
        table: Option<&TableName>,
    ) -> Result<(), ServiceError> {
        let is_permitted = match self {
            Self::Account => true,
            Self::AccountSas(sas) => {
                if !sas.resource_types.set().intersects(requirements.types) {
                    return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
                }
                let mut sets = requirements.account.iter();
                sets.any(|set| sas.permissions.set().contains(*set))
            }
            Self::TableSas(grant) if table == Some(&grant.table) => {
                grant.permissions.contains(requirements.table)
            }
            Self::TableSas(_) => return Err(ErrorCode::AuthorizationFailure.into()),
            Self::Token(grant) => {
                let mut actions = requirements.token.iter();
                actions.all(|action| grant.allows(*action))
            }
        };
        if is_permitted {
            Ok(())
        } else {
            Err(ErrorCode::AuthorizationPermissionMismatch.into())
        }
    }
}
