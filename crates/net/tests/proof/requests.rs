//! Certificate requests: the key stays at the site, and a request gets a client's certificate for its name or nothing.

use crate::stage::{Stage, config};
use data_encoding::BASE64;
use fedtvd_net::client::{Connection, Security};
use fedtvd_net::federation::Options;
use fedtvd_net::identity::{RequestError, SigningRequest, request_certificate};
use rcgen::{
    Attribute, BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType, SigningKey as _,
};
use std::path::Path;

/// A request in PEM form.
fn pem(der: &[u8]) -> Vec<u8> {
    let text = BASE64.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", lines.join("\n"))
        .into_bytes()
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The answer to a request with this content, made with a key of the right kind.
fn answer(params: &CertificateParams) -> Result<SigningRequest, RequestError> {
    let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
    SigningRequest::parse(request.pem().unwrap().as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_joins_with_a_key_that_the_operator_never_had() {
    let stage = Stage::new(2);
    let site = stage.path("site");
    let made = request_certificate("rome", &site).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&made.key).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let request = SigningRequest::read(&made.request).unwrap();
    assert_eq!((request.name(), request.key_hash()), ("rome", made.key_hash.clone()));
    let (folder, listed) = stage.certs.sign(&request, None, 1000, 5).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["ca.pem", "cert.pem"]);
    for name in files {
        std::fs::copy(folder.join(&name), site.join(&name)).unwrap();
    }
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&["model.name=logistic"]), options);
    let mut link = Connection::dial(&running.address(), &Security::client(&site).unwrap()).await.unwrap();
    let welcome = link.hello().await.unwrap();
    assert_eq!((welcome.name.as_str(), welcome.client), ("rome", 2));
    // Renewal keeps the key, and gives a certificate with another serial number beside the first.
    let again = request_certificate("rome", &site).unwrap();
    assert_eq!((again.new_key, &again.key_hash), (false, &made.key_hash));
    let request = SigningRequest::read(&again.request).unwrap();
    let (_, renewed) = stage.certs.sign(&request, None, 1000, 5).unwrap();
    assert_eq!(renewed.id, listed.id);
    assert_ne!(renewed.serial, listed.serial);
    link.hello().await.unwrap();
    // A client takes the newest certificate for its next connection, without a restart.
    let security = Security::client(&site).unwrap();
    std::fs::copy(folder.join("cert.pem"), site.join("cert.pem")).unwrap();
    stage.certs.revoke_serial(&listed.serial.unwrap()).unwrap();
    Connection::dial(&running.address(), &security).await.unwrap().hello().await.unwrap();
    running.stop();
}

#[test]
fn a_request_for_anything_but_a_name_is_refused() {
    assert_eq!(answer(&params("rome")).unwrap().name(), "rome");
    let mut asks = Vec::new();
    let mut more = |what: &'static str, change: &dyn Fn(&mut CertificateParams)| {
        let mut params = params("rome");
        change(&mut params);
        asks.push((what, answer(&params)));
    };
    more("an authority", &|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    more("no authority", &|params| params.is_ca = IsCa::ExplicitNoCa);
    more("a key's use", &|params| params.key_usages = vec![KeyUsagePurpose::KeyCertSign]);
    more("a server", &|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
    more("another name", &|params| {
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    });
    for (what, answer) in asks {
        assert!(matches!(answer, Err(RequestError::Attributes)), "{what}: {answer:?}");
    }
    // An attribute that is not a list of extensions: a challenge password.
    let oid: &'static [u64] = &[1, 2, 840, 113_549, 1, 9, 7];
    let values = vec![0x31, 3, 0x13, 1, b'x'];
    let key = KeyPair::generate().unwrap();
    let request = params("rome").serialize_request_with_attributes(&key, vec![Attribute { oid, values }]);
    let answered = SigningRequest::parse(request.unwrap().pem().unwrap().as_bytes());
    assert!(matches!(answered, Err(RequestError::Attributes)), "{answered:?}");

    let mut two = params("rome");
    two.distinguished_name.push(DnType::OrganizationName, "elsewhere");
    let mut other = params("rome");
    other.distinguished_name = DistinguishedName::new();
    other.distinguished_name.push(DnType::OrganizationName, "rome");
    let mut nobody = params("rome");
    nobody.distinguished_name = DistinguishedName::new();
    for subject in [two, other, nobody] {
        let answer = answer(&subject);
        assert!(matches!(answer, Err(RequestError::Subject)), "{answer:?}");
    }
    for name in ["../rome", "", "ro me", ".rome", "röm", "operator\n", &"x".repeat(65)] {
        let answer = answer(&params(name));
        assert!(matches!(answer, Err(RequestError::Name(_))), "{name}: {answer:?}");
        assert!(request_certificate(name, Path::new("nowhere")).is_err(), "{name}");
    }
    for kind in [&PKCS_ED25519, &PKCS_ECDSA_P384_SHA384] {
        let request = params("rome").serialize_request(&KeyPair::generate_for(kind).unwrap()).unwrap();
        let answer = SigningRequest::parse(request.pem().unwrap().as_bytes());
        assert!(matches!(answer, Err(RequestError::Key)), "{answer:?}");
    }
}

/// The header of a DER value: the length of the header and of the content.
fn header(der: &[u8]) -> (usize, usize) {
    match der[1] {
        length @ 0..=0x7f => (2, usize::from(length)),
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
        other => panic!("length {other}"),
    }
}

/// A DER value.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82, length[0], length[1]], content].concat()
}

#[test]
fn a_damaged_or_forged_request_is_refused_without_a_panic() {
    let key = KeyPair::generate().unwrap();
    let request = params("rome").serialize_request(&key).unwrap();
    let der: &[u8] = request.der();
    let (start, _) = header(der);
    let (head, length) = header(&der[start..]);
    let (info, rest) = der[start..].split_at(head + length);
    let (head, length) = header(rest);
    let algorithm = &rest[..head + length];
    let signed = |info: &[u8]| {
        let signature = value(3, &[&[0], &key.sign(info).unwrap()[..]].concat());
        value(0x30, &[info, algorithm, &signature].concat())
    };
    let honest = SigningRequest::parse(&pem(&signed(info))).unwrap();
    let (mut refused, mut renamed) = (0, 0);
    for place in 0..der.len() {
        for change in [1, 0x20, 0x80, 0xff] {
            let mut damaged = der.to_vec();
            damaged[place] ^= change;
            match SigningRequest::parse(&pem(&damaged)) {
                // Some bits around the signed content mean nothing.
                Ok(request) => {
                    assert_eq!((request.name(), request.key_hash()), ("rome", honest.key_hash()), "{place}");
                }
                Err(_) => refused += 1,
            }
        }
        assert!(SigningRequest::parse(&pem(&der[..place])).is_err());
    }
    // Whoever has the key can sign any content: it is a name that the operator sees, or refused.
    for place in 0..info.len() {
        for change in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut changed = info.to_vec();
            changed[place] ^= change;
            match SigningRequest::parse(&pem(&signed(&changed))) {
                Ok(request) => {
                    assert!(request.name().len() == 4 && request.name().is_ascii(), "{}", request.name());
                    renamed += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(SigningRequest::parse(&pem(&signed(&info[..place]))).is_err());
    }
    assert!(refused > 1000 && renamed > 0, "{refused} {renamed}");
    for text in [
        "",
        "rome",
        "-----BEGIN CERTIFICATE REQUEST-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert!(SigningRequest::parse(text.as_bytes()).is_err());
    }
    // Bytes after a request, and a set of names without a name.
    let trailing = [der, &[0]].concat();
    assert!(SigningRequest::parse(&pem(&trailing)).is_err());
    let (head, _) = header(info);
    let version = &info[head..head + 3];
    let (subject_head, subject) = header(&info[head + 3..]);
    let after = &info[head + 3 + subject_head + subject..];
    let empty = value(0x30, &[version, &value(0x30, &value(0x31, &[])), after].concat());
    let answer = SigningRequest::parse(&pem(&signed(&empty)));
    assert!(answer.is_err(), "{answer:?}");
}
