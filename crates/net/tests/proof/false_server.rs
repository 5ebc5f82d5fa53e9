//! A server whose every welcome is controlled by the test, and what a site with a table lets it learn.

use fedtvd_net::client::{Connection, JoinError, Options, Progress, Security, SiteData, SiteError, join};
use fedtvd_net::wire::federation_server::{Federation, FederationServer};
use fedtvd_net::wire::{self, PROTOCOL};
use fedtvd_nn::models;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

type Reply<T> = Result<Response<T>, Status>;

/// Sends one welcome after the other, the last one again and again, and refuses all work as temporarily impossible.
struct FalseServer {
    welcomes: Mutex<Vec<wire::Welcome>>,
    told: Arc<Mutex<Vec<wire::ColumnStatistics>>>,
}

fn away<T>() -> Reply<T> {
    Err(Status::unavailable("later"))
}

#[tonic::async_trait]
impl Federation for FalseServer {
    type PullStream = ReceiverStream<Result<wire::Work, Status>>;
    type UploadStream = ReceiverStream<Result<wire::UploadReply, Status>>;

    async fn hello(self: Arc<Self>, _: Request<wire::HelloRequest>) -> Reply<wire::Welcome> {
        let mut welcomes = self.welcomes.lock().unwrap();
        let next = if welcomes.len() > 1 { welcomes.remove(0) } else { welcomes[0].clone() };
        drop(welcomes);
        Ok(Response::new(next))
    }
    async fn columns(self: Arc<Self>, told: Request<wire::ColumnStatistics>) -> Reply<wire::CompleteSchema> {
        self.told.lock().unwrap().push(told.into_inner());
        away()
    }
    async fn enrol(self: Arc<Self>, _: Request<wire::Enrolment>) -> Reply<wire::Empty> {
        away()
    }
    async fn pull(self: Arc<Self>, _: Request<wire::PullRequest>) -> Reply<Self::PullStream> {
        away()
    }
    async fn upload(
        self: Arc<Self>,
        _: Request<Streaming<wire::UploadRequest>>,
    ) -> Reply<Self::UploadStream> {
        away()
    }
    async fn fail(self: Arc<Self>, _: Request<wire::Failure>) -> Reply<wire::Empty> {
        away()
    }
    async fn judge(self: Arc<Self>, _: Request<wire::Counts>) -> Reply<wire::Empty> {
        away()
    }
    async fn decline(self: Arc<Self>, _: Request<wire::Declined>) -> Reply<wire::Empty> {
        away()
    }
    async fn status(self: Arc<Self>, _: Request<wire::StatusRequest>) -> Reply<wire::StatusReply> {
        away()
    }
}

/// A server with these welcomes: its address, what it is told, and its task.
fn serve(welcomes: Vec<wire::Welcome>) -> (String, Arc<Mutex<Vec<wire::ColumnStatistics>>>, JoinHandle<()>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let server = FalseServer { welcomes: Mutex::new(welcomes), told: Arc::clone(&told) };
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let service = FederationServer::new(server);
    let serving = tokio::spawn(async move {
        let served = tonic::transport::Server::builder().serve_with_incoming(service, incoming);
        served.await.unwrap();
    });
    (address.to_string(), told, serving)
}

/// What became of a site that joined a server with these welcomes, and what it told about its columns.
async fn joined(
    folder: &Path,
    welcomes: Vec<wire::Welcome>,
) -> (JoinError, Vec<wire::ColumnStatistics>, Vec<Progress>) {
    let (address, told, serving) = serve(welcomes);
    let reported = Mutex::new(Vec::new());
    let report = |progress: &Progress| reported.lock().unwrap().push(progress.clone());
    // A site that does not give up would try again for ever.
    let joining = join(options(folder, &address), &report);
    let joined = tokio::time::timeout(Duration::from_secs(20), joining).await;
    let error = joined.expect("the site gives up").unwrap_err();
    serving.abort();
    let told = told.lock().unwrap().clone();
    (error, told, reported.into_inner().unwrap())
}

fn options(folder: &Path, server: &str) -> Options {
    let path = folder.join("patients.csv");
    let rows: String = (0..60).map(|row| format!("{},{},x,1\n", 20 + row, ["no", "yes"][row % 2])).collect();
    std::fs::write(&path, format!("age,sick,secret,town\n{rows}")).unwrap();
    let columns = Some(vec!["age".to_owned(), "town".to_owned()]);
    let data = SiteData::Table { path, label: None, test: 0.2, columns };
    let security = Security::Claimed("0".to_owned());
    Options::new(server.to_owned(), security, data, folder.join("state"))
}

fn welcome() -> wire::Welcome {
    let network = models::named("logistic", [1, 1, 1], 2).unwrap();
    wire::Welcome {
        protocol: PROTOCOL,
        run: "run1".to_owned(),
        client: 0,
        name: "berlin".to_owned(),
        network: serde_json::to_string(&network).unwrap(),
        crop: 0,
        flip: false,
        strategy: "fedavg".to_owned(),
        mode: "paper".to_owned(),
        rounds: 1,
        classes: vec!["no".to_owned(), "yes".to_owned()],
        version: "1".to_owned(),
        schema: schema("[0, 100]"),
        ask: "\"nothing\"".to_owned(),
        epochs: 1,
        clients_evaluate: false,
        reference: String::new(),
    }
}

fn schema(bounds: &str) -> String {
    format!(
        "[label]\ncolumn = \"sick\"\nclasses = [\"no\", \"yes\"]\n[[column]]\nname = \"age\"\nkind = \"number\"\nbounds = {bounds}\n"
    )
}

#[tokio::test]
async fn a_server_that_sends_another_schema_gets_no_further_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let other = wire::Welcome { schema: schema("[0, 40]"), ..welcome() };
    let elsewhere = wire::Welcome { run: "run2".to_owned(), ..other.clone() };
    for (changed, end) in [(other.clone(), "table-0.json"), (elsewhere, "to agree, start join again")] {
        let folder = tempfile::tempdir().unwrap();
        let (error, told, _) = joined(folder.path(), vec![welcome(), changed]).await;
        assert!(matches!(error, JoinError::Site(SiteError::SchemaChanged { .. })), "{error}");
        assert!(error.to_string().ends_with(end), "{error}");
        assert_eq!(told.len(), 1);
    }
    // Nor after a restart of the client.
    let broken = wire::Welcome { run: "../run".to_owned(), ..welcome() };
    let (_, first, _) = joined(folder.path(), vec![welcome(), welcome(), broken]).await;
    assert!(first.len() == 2 && first[0] == first[1], "{first:?}");
    let (error, told, _) = joined(folder.path(), vec![other]).await;
    assert!(matches!(error, JoinError::Site(SiteError::SchemaChanged { .. })), "{error}");
    assert_eq!(told, []);
}

#[tokio::test]
async fn nothing_about_a_table_leaves_before_run_model_and_classes_are_checked() {
    for (wrong, why) in [
        (wire::Welcome { run: "../../bad".to_owned(), ..welcome() }, "a run name"),
        (wire::Welcome { network: "{}".to_owned(), ..welcome() }, "a model"),
        (
            wire::Welcome { classes: vec!["yes".to_owned(), "no".to_owned()], ..welcome() },
            "classes are yes, no",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (error, told, _) = joined(folder.path(), vec![wrong]).await;
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(told, []);
        assert!(!folder.path().join("bad").exists());
    }
}

#[tokio::test]
async fn no_statistics_of_columns_are_sent_if_the_announced_reference_is_one_too_many() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("state")).unwrap();
    // The site has disclosed a distance to another reference, in another run.
    let disclosed = serde_json::json!({
        "time": "2026-01-01T00:00:00Z", "server": "", "authority": "", "data": "", "run": "run0", "message": "Enrol",
        "content": "", "count": 1, "bytes": 1, "reference": "other"
    });
    std::fs::write(folder.path().join("state/sent.jsonl"), format!("{disclosed}\n")).unwrap();
    let announced =
        wire::Welcome { ask: "\"distance\"".to_owned(), reference: "[0.5,0.5]".to_owned(), ..welcome() };
    let (error, told, _) = joined(folder.path(), vec![announced]).await;
    assert!(error.to_string().ends_with("(references = 1)"), "{error}");
    assert_eq!(told, []);
}

#[tokio::test]
async fn a_site_sees_which_columns_are_read_and_refuses_those_that_it_does_not_list() {
    let folder = tempfile::tempdir().unwrap();
    let broken = wire::Welcome { run: "../run".to_owned(), ..welcome() };
    let (_, told, reported) = joined(folder.path(), vec![welcome(), broken]).await;
    let Some(Progress::Reads(table)) = reported.first() else { panic!("{reported:?}") };
    assert_eq!(
        table.to_string(),
        "the server's schema reads the columns age and the label sick; count, mean and squared deviations are sent of age"
    );
    assert_eq!(told.len(), 1);
    let categories: Vec<String> = (0..65).map(|place| format!("{place:?}")).collect();
    let more = format!("[[column]]\nname = \"secret\"\nkind = \"category\"\ncategories = {categories:?}\n");
    let nosy = wire::Welcome { schema: schema("[0, 100]") + &more, run: "run3".to_owned(), ..welcome() };
    let folder = tempfile::tempdir().unwrap();
    let (error, told, _) = joined(folder.path(), vec![nosy.clone()]).await;
    let sentence = "the server's schema reads columns that --columns does not list: secret";
    assert_eq!((error.to_string().as_str(), told), (sentence, vec![]));
    // Of a column that it lists it is warned if there are many categories.
    let many = wire::Welcome { schema: nosy.schema.replace("\"secret\"", "\"town\""), ..nosy };
    let (_, _, reported) = joined(folder.path(), vec![many]).await;
    let warning = "town: the server's schema has 65 categories; make sure that they do not identify people";
    assert!(matches!(&reported[1], Progress::Read(notes) if notes[0] == warning), "{reported:?}");
}

#[tokio::test]
async fn what_a_server_sends_cannot_move_a_terminals_cursor() {
    let escape = "\u{1b}[2J\u{1b}]0;title\u{7}".repeat(1000);
    let [name, strategy, mode] = [&escape; 3].map(Clone::clone);
    let shown = wire::Welcome { name, strategy, mode, run: "run1".to_owned(), ..welcome() };
    let schemas = [escape.clone(), format!("{}{escape}", welcome().schema)];
    let welcomes = [
        wire::Welcome { classes: vec![escape.clone()], ..shown.clone() },
        wire::Welcome { run: escape.clone(), ..shown.clone() },
        wire::Welcome { network: format!("\"{escape}\""), ..shown.clone() },
    ];
    let welcomes =
        welcomes.into_iter().chain(schemas.map(|schema| wire::Welcome { schema, ..shown.clone() }));
    for welcome in welcomes {
        let folder = tempfile::tempdir().unwrap();
        let (error, _, reported) = joined(folder.path(), vec![welcome]).await;
        let error = error.to_string();
        assert!(!error.chars().any(char::is_control) && error.len() < 3000, "{error:?}");
        assert!(reported.iter().all(|progress| !matches!(progress, Progress::Joined(_))));
    }
    let (address, _, serving) = serve(vec![shown]);
    let mut connection = Connection::dial(&address, &Security::Claimed("0".to_owned())).await.unwrap();
    let welcome = connection.hello().await.unwrap();
    for text in [welcome.name, welcome.strategy, welcome.mode] {
        assert!(!text.chars().any(char::is_control) && text.len() < 3000, "{text:?}");
    }
    serving.abort();
}
