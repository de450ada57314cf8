//! Encrypted connections, and how much of the server's certificate is believed.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokkuri_server::store::PostgresStore;
use tokkuri_server::store::postgres::{OpenError, PostgresOptions};
use tokkuri_tests::harness::Postgres;
use tokkuri_tests::harness::postgres::Options;

use super::{draft, inserted};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The server reads its key as whoever it runs as, and wants nobody else to be able to.
fn private(file: &Path) {
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        let of = |flag: &str| {
            let id = Command::new("id").args([flag, "postgres"]).output().unwrap();
            String::from_utf8(id.stdout).unwrap().trim().parse::<u32>().unwrap()
        };
        chown(file, Some(of("-u")), Some(of("-g"))).unwrap();
    }
}

async fn open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(PostgresOptions::from_url(url)?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_believed_as_far_as_the_url_says() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let place = |name: &str| dir.path().join(name);
    let (ours, other) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    std::fs::write(place("cert.pem"), cert.pem()).unwrap();
    std::fs::write(place("key.pem"), key.serialize_pem()).unwrap();
    private(&place("key.pem"));
    std::fs::write(place("ours.pem"), ours.pem()).unwrap();
    std::fs::write(place("other.pem"), other.pem()).unwrap();
    std::fs::write(place("hba.conf"), "host all all all trust\n").unwrap();
    let postgres: Postgres = Options::default()
        .setting("ssl", "on")
        .setting("ssl_cert_file", place("cert.pem").display())
        .setting("ssl_key_file", place("key.pem").display())
        .setting("hba_file", place("hba.conf").display())
        .start();
    let by_address = postgres.url();
    let by_name = by_address.replace("127.0.0.1", "localhost");
    let root = |name: &str| format!("sslrootcert={}", place(name).display());

    let encrypted = "select count(*) > 0 from pg_stat_ssl join pg_stat_activity using (pid) \
        where ssl and application_name = 'tokkuri'";
    let accepted = [
        ("sslmode=disable".to_owned(), "f"),
        ("sslmode=prefer".to_owned(), "t"),
        ("sslmode=require".to_owned(), "t"),
        (format!("sslmode=verify-ca&{}", root("ours.pem")), "t"),
    ];
    for (n, (query, is_encrypted)) in (0..).zip(accepted) {
        let store = open(&format!("{by_address}?notify=off&{query}")).await.unwrap();
        inserted(&store, draft(n)).await;
        assert_eq!(postgres.psql(&by_address, encrypted), is_encrypted, "{query}");
        drop(store);
        let start = std::time::Instant::now();
        while postgres.psql(&by_address, "select count(*) from pg_stat_activity where application_name = 'tokkuri'")
            != "0"
        {
            assert!(start.elapsed() < tokkuri_tests::harness::DEADLINE, "the connections of a store go with it");
        }
    }
    open(&format!("{by_name}?sslmode=verify-full&{}", root("ours.pem"))).await.unwrap();

    for url in [
        format!("{by_address}?sslmode=verify-full&{}", root("ours.pem")), // not the name in the certificate
        format!("{by_name}?sslmode=verify-full&{}", root("other.pem")),
        format!("{by_address}?sslmode=verify-ca&{}", root("other.pem")),
        format!("{by_address}?sslmode=require&{}", root("other.pem")),
        format!("{by_name}?sslmode=verify-full"), // an authority that no machine knows
        format!("{by_name}?sslmode=verify-full&{}", root("nowhere.pem")),
        format!("{by_name}?sslmode=verify-full&{}", root("key.pem")),
    ] {
        let refused = open(&url).await.unwrap_err();
        assert!(matches!(refused, OpenError::Tls { .. }), "{url}: {refused}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_to_whoever_asks_for_it() {
    let url = Postgres::shared().url();
    let refused = open(&format!("{url}?sslmode=require")).await.unwrap_err();
    assert!(matches!(refused, OpenError::Tls { .. }), "{refused}");
    open(&format!("{url}?sslmode=prefer")).await.unwrap();
}
