//! Who may take part: the federation's certificate authority, the list of clients, TLS, and the identity behind a request.
//!
//! `authority` issues and revokes certificates, `allow_list` is the file that lists them, `tls` sets up both sides of a
//! connection, and `peer_identity` maps a certificate to a client or the operator.

pub(crate) mod allow_list;
mod authority;
pub(crate) mod peer_identity;
pub mod tls;

pub use allow_list::{AllowError, AllowList, Listed};
pub use authority::{Authority, AuthorityError, CertificateRequest};
