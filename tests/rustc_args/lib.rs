//! The libraries of a test, for tests that run the compiler themselves.
//!
//! A macro runs inside the compiler, so it can read the options that cargo passed. They name
//! exactly the libraries with which the test was built: a second build is not necessary.

use std::env::args;

use proc_macro::{Delimiter, Group, Literal, Punct, Spacing, TokenStream, TokenTree};

/// The options `--extern` and `-L` of the crate that is being compiled, each followed by its value:
/// a `[&str; N]`.
#[proc_macro]
pub fn library_options(_: TokenStream) -> TokenStream {
    let options = args().zip(args().skip(1));
    let options = options.filter(|(option, _)| matches!(&**option, "--extern" | "-L"));
    let texts = options.flat_map(|(option, value)| [option, value]);
    let items = texts.flat_map(|text| -> [TokenTree; 2] {
        [
            Literal::string(&text).into(),
            Punct::new(',', Spacing::Alone).into(),
        ]
    });
    TokenTree::Group(Group::new(Delimiter::Bracket, items.collect())).into()
}
