//! Who may take part: the federation's certificate authority, the list of clients, TLS, and the identity behind a request.
//!
//! `authority` is the folder with the authority and the server's certificate, `client_certificates` issues, signs and
//! revokes those of clients, `allow_list` is the file that lists them, `watched_list` the one that a running server reads, and `list_lock` is held around
//! every change of it. `same_owner` replaces files that the server must be able to read, whoever writes them.
//! `certificate_subject` reads whose certificate a file holds. `signing_request` is made at a site and checked at the authority. `tls` sets up both sides of a connection with
//! certificates that `certificate_file` reads again when they change, and `peer_identity` maps a certificate to a client
//! or the operator.

pub(crate) mod allow_list;
mod authority;
pub(crate) mod certificate_file;
mod certificate_subject;
mod client_certificates;
mod client_name;
pub(crate) mod file_version;
mod list_lock;
pub(crate) mod peer_identity;
mod same_owner;
mod signing_request;
pub mod tls;
pub(crate) mod watched_list;

pub use allow_list::{AllowError, AllowList, Listed};
pub use authority::{Authority, AuthorityError};
pub use client_certificates::CertificateRequest;
pub use client_name::NameError;
pub use signing_request::{RequestError, Requested, SigningRequest, request_certificate};
