//! What actions have in common, as macros: `.await`, the options of `exactly_once`, and `Debug`.

/// Makes an action awaitable: `.await` calls its method `run`.
macro_rules! awaitable {
    (impl[$($generics:tt)*] $action:ty => $lifetime:lifetime, $output:ty) => {
        impl<$($generics)*> IntoFuture for $action {
            type Output = Result<$output, crate::Error>;
            type IntoFuture = crate::action::ActionFuture<$lifetime, $output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.run())
            }
        }
    };
    (impl[$($generics:tt)*] $action:ty => $output:ty) => {
        awaitable!(impl[$($generics)*] $action => 'static, $output);
    };
}

/// Adds the methods `exactly_once` and `keep_marker` to a write.
macro_rules! exactly_once_options {
    (impl[$($generics:tt)*] $action:ty; $(#[$exactly_once:meta])*) => {
        impl<$($generics)*> $action {
            $(#[$exactly_once])*
            pub const fn exactly_once(mut self) -> Self {
                self.exactly_once = KeepMarker::unless_chosen(self.exactly_once);
                self
            }

            /// As `exactly_once`, and keeps the marker for at least that long. A duplicate of the request that the network delivers
            /// within that time finds the marker and has no effect. Once the marker is deleted, a duplicate is carried out like a new
            /// request. Without this option, the marker is deleted at once after a success.
            ///
            /// The time begins when the service stores the marker. After it, only
            /// [`sweep_markers`](crate::TableClient::sweep_markers) deletes the marker. A successful operation therefore sends one
            /// request less, and leaves one more entity in the table until the marker is deleted.
            pub const fn keep_marker(mut self, time: std::time::Duration) -> Self {
                self.exactly_once = Some(KeepMarker(time));
                self
            }
        }
    };
}

/// `Debug` by the named fields. A derived one would ask for it from the entity type, too.
macro_rules! debug_by_fields {
    ($action:ident<$($param:ident),+> { $($field:ident),+ }) => {
        impl<$($param),+> std::fmt::Debug for $action<$($param),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($action))
                    $(.field(stringify!($field), &self.$field))+
                    .finish_non_exhaustive()
            }
        }
    };
}
