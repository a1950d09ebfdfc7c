//! The permissions of a principal, according to the service's permission tables.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/create-account-sas#account-sas-permissions-by-operation> and
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas#permissions-for-a-table>.

use http::request::Parts;
use http::{Method, header};
use tablesdk_protocol::auth::sas::{
    AccountPermission, AccountSas, SasKeyRange, SasResourceType, TablePermission,
};
use tablesdk_protocol::header::X_HTTP_METHOD;
use tablesdk_protocol::operation::{Operation, QueryOptions, batch, get_entity, update_entity};
use tablesdk_protocol::{EntityKey, ErrorCode, ResourcePath, ServiceError, TableName};

use super::{Principal, TableGrant, TokenAction};

/// A change of one entity, as far as permissions care.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The table.
    pub(crate) table: &'a TableName,
    /// The entity; `None` where it is in a body that was not read yet. Ask again once it was.
    pub(crate) key: Option<&'a EntityKey>,
    /// What happens to it.
    pub(crate) kind: WriteKind,
}

impl<'a> Write<'a> {
    /// What a change of a batch does.
    pub(crate) const fn of(change: &'a batch::Change) -> Self {
        match change {
            batch::Change::Delete(request) => Self {
                table: &request.table,
                key: Some(&request.key),
                kind: WriteKind::Delete,
            },
            batch::Change::Insert(request) => Self {
                table: &request.table,
                key: None,
                kind: WriteKind::Insert,
            },
            batch::Change::Update(request) => Self::update(request),
        }
    }

    const fn update(request: &'a update_entity::Request) -> Self {
        Self {
            table: &request.table,
            key: Some(&request.key),
            kind: match request.if_match {
                Some(_) => WriteKind::Update,
                None => WriteKind::Upsert,
            },
        }
    }
}

/// What can happen to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// It is deleted.
    Delete,
    /// It is inserted.
    Insert,
    /// It is replaced or merged into, on some condition.
    Update,
    /// It is replaced, merged into or inserted.
    Upsert,
}

impl Principal {
    /// Whether a change is allowed: one that is a request of its own, or one of a batch.
    ///
    /// # Errors
    ///
    /// `AuthorizationPermissionMismatch` or `AuthorizationResourceTypeMismatch` for what the signature lacks;
    /// `AuthorizationFailure` for an entity that it does not cover.
    pub(crate) fn authorize(&self, change: &Write<'_>) -> Result<(), ServiceError> {
        match self {
            Self::Account => Ok(()),
            Self::AccountSas(sas) => {
                require_type(sas, &[SasResourceType::Object])?;
                require_all(sas, change.kind.account_permissions())
            }
            Self::TableSas(grant) => {
                grant.require(change.table, change.kind.table_permissions())?;
                if change.key.is_none_or(|key| grant.keys.contains(key)) {
                    Ok(())
                } else {
                    Err(ErrorCode::AuthorizationFailure.into())
                }
            }
            Self::Token(grant) => grant.require(change.kind.token_actions()),
        }
    }

    /// Whether an operation is allowed. For a query see [`Principal::keys`], too; for an insert ask
    /// [`Principal::authorize`] once the body was read, and so for each change of a batch.
    ///
    /// # Errors
    ///
    /// As for a change; `ResourceNotFound` for an entity that a signature does not cover.
    pub(crate) fn authorize_operation(&self, operation: &Operation) -> Result<(), ServiceError> {
        use {AccountPermission as Permission, SasResourceType as Type, TokenAction as Action};
        let change = |table, key, kind| self.authorize(&Write { table, key, kind });
        match operation {
            // Each of its operations is authorized where it is carried out.
            Operation::Batch(_) => Ok(()),
            Operation::CreateTable(_) => self.authorize_create_table(),
            Operation::DeleteEntity(request) => {
                change(&request.table, Some(&request.key), WriteKind::Delete)
            }
            Operation::DeleteTable(_) => {
                let permissions = [Permission::Delete];
                self.authorize_account(&[Type::Container], &permissions, Action::DeleteTables)
            }
            Operation::GetEntity(request) => self.authorize_get(request),
            Operation::GetMetadata(_)
            | Operation::GetServiceProperties(_)
            | Operation::GetServiceStats(_) => {
                let permissions = [Permission::Read];
                self.authorize_account(&[Type::Service], &permissions, Action::ReadService)
            }
            // SERVICE: older documents want the service for this.
            Operation::GetTable(_) | Operation::QueryTables(_) => {
                let types = [Type::Container, Type::Service];
                self.authorize_account(&types, &[Permission::List], Action::ReadTables)
            }
            Operation::InsertEntity(request) => change(&request.table, None, WriteKind::Insert),
            Operation::Misplaced(table, _) => self.authorize_read(table),
            Operation::QueryEntities(request) => self.authorize_read(&request.table),
            Operation::SetServiceProperties(_) => self.authorize_set_service_properties(),
            Operation::UpdateEntity(request) => self.authorize(&Write::update(request)),
            // Stored access policies among them: no signature reaches those that limit it, and no token gets this far.
            _ if *self == Self::Account => Ok(()),
            _ => Err(ErrorCode::AuthorizationFailure.into()),
        }
    }

    /// Refuses what the head of a request says already that it may not do, so that its body need not be read. What passes is not
    /// allowed yet: ask [`Principal::authorize_operation`].
    ///
    /// # Errors
    ///
    /// As for an operation.
    pub(crate) fn authorize_head(
        &self,
        head: &Parts,
        resource: &ResourcePath,
        options: &QueryOptions,
    ) -> Result<(), ServiceError> {
        let method = match head.headers.get(X_HTTP_METHOD) {
            Some(tunnelled) if head.method == Method::POST => tunnelled.as_bytes(),
            // Refused as malformed, whoever sends it.
            Some(_) => return Ok(()),
            None => head.method.as_str().as_bytes(),
        };
        match (resource, options.get("comp"), method) {
            (ResourcePath::Service, Some("properties"), b"PUT") => {
                self.authorize_set_service_properties()
            }
            (ResourcePath::EntitySet(_), Some("acl"), b"PUT") if *self != Self::Account => {
                Err(ErrorCode::AuthorizationFailure.into())
            }
            (ResourcePath::Tables, None, b"POST") => self.authorize_create_table(),
            (ResourcePath::EntitySet(table), None, b"POST") => self.authorize(&Write {
                table,
                key: None,
                kind: WriteKind::Insert,
            }),
            (ResourcePath::Entity(table, key), None, b"PUT" | b"MERGE" | b"PATCH") => {
                let kind = if head.headers.contains_key(header::IF_MATCH) {
                    WriteKind::Update
                } else {
                    WriteKind::Upsert
                };
                let key = Some(key);
                self.authorize(&Write { table, key, kind })
            }
            _ => Ok(()),
        }
    }

    fn authorize_create_table(&self) -> Result<(), ServiceError> {
        let permissions = [AccountPermission::Create, AccountPermission::Write];
        let types = [SasResourceType::Container];
        self.authorize_account(&types, &permissions, TokenAction::CreateTables)
    }

    fn authorize_set_service_properties(&self) -> Result<(), ServiceError> {
        let permissions = [AccountPermission::Write];
        let types = [SasResourceType::Service];
        self.authorize_account(&types, &permissions, TokenAction::WriteService)
    }

    /// The entities that it sees; `None` for all.
    pub(crate) fn keys(&self) -> Option<&SasKeyRange> {
        match self {
            Self::TableSas(grant) => Some(&grant.keys),
            Self::Account | Self::AccountSas(_) | Self::Token(_) => None,
        }
    }

    /// Whether an entity may be read.
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

    /// Whether a table may be queried. [`Principal::keys`] returns the ranges of keys that the principal may see.
    ///
    /// # Errors
    ///
    /// As for an operation.
    pub(crate) fn authorize_read(&self, table: &TableName) -> Result<(), ServiceError> {
        match self {
            Self::Account => Ok(()),
            Self::AccountSas(sas) => {
                require_type(sas, &[SasResourceType::Object])?;
                require_all(sas, &[AccountPermission::Read])
            }
            Self::TableSas(grant) => grant.require(table, &[TablePermission::Read]),
            Self::Token(grant) => grant.require(&[TokenAction::ReadEntities]),
        }
    }

    /// For what a table SAS is never good: one of these types, and one of these permissions; or this action.
    fn authorize_account(
        &self,
        types: &[SasResourceType],
        permissions: &[AccountPermission],
        action: TokenAction,
    ) -> Result<(), ServiceError> {
        match self {
            Self::Account => Ok(()),
            Self::AccountSas(sas) => {
                require_type(sas, types)?;
                if permissions.iter().any(|p| sas.permissions.contains(*p)) {
                    Ok(())
                } else {
                    Err(ErrorCode::AuthorizationPermissionMismatch.into())
                }
            }
            Self::TableSas(_) => Err(ErrorCode::AuthorizationFailure.into()),
            Self::Token(grant) => grant.require(&[action]),
        }
    }
}

impl WriteKind {
    const fn account_permissions(self) -> &'static [AccountPermission] {
        match self {
            Self::Delete => &[AccountPermission::Delete],
            Self::Insert => &[AccountPermission::Add],
            Self::Update => &[AccountPermission::Update],
            Self::Upsert => &[AccountPermission::Add, AccountPermission::Update],
        }
    }

    const fn token_actions(self) -> &'static [TokenAction] {
        match self {
            Self::Delete => &[TokenAction::DeleteEntities],
            Self::Insert => &[TokenAction::AddEntities],
            Self::Update => &[TokenAction::UpdateEntities],
            Self::Upsert => &[TokenAction::AddEntities, TokenAction::UpdateEntities],
        }
    }

    const fn table_permissions(self) -> &'static [TablePermission] {
        match self {
            Self::Delete => &[TablePermission::Delete],
            Self::Insert => &[TablePermission::Add],
            Self::Update => &[TablePermission::Update],
            Self::Upsert => &[TablePermission::Add, TablePermission::Update],
        }
    }
}

impl TableGrant {
    fn require(
        &self,
        table: &TableName,
        permissions: &[TablePermission],
    ) -> Result<(), ServiceError> {
        if *table != self.table {
            return Err(ErrorCode::AuthorizationFailure.into());
        }
        if permissions.iter().all(|p| self.permissions.contains(*p)) {
            Ok(())
        } else {
            Err(ErrorCode::AuthorizationPermissionMismatch.into())
        }
    }
}

fn require_type(sas: &AccountSas, types: &[SasResourceType]) -> Result<(), ServiceError> {
    if types.iter().any(|t| sas.resource_types.contains(*t)) {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationResourceTypeMismatch.into())
    }
}

fn require_all(sas: &AccountSas, permissions: &[AccountPermission]) -> Result<(), ServiceError> {
    if permissions.iter().all(|p| sas.permissions.contains(*p)) {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationPermissionMismatch.into())
    }
}
