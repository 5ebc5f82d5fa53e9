//! A tiny federation in memory: plan, train at every site, close, through the public functions alone.

use crate::exact::{Exact, Quadratic, Regression};
use crate::in_memory::InMemory;
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::memory::{Array, Memory};
use fedtvd_core::model::{LayerKind, Layout, Params, Role, Tensor};
use fedtvd_core::round::{
    ClientData, ClientFailure, ClientId, ClientRecord, Job, Mode, Offer, Profile, Report, RoundRecord, Run,
    State, Upload, close, plan,
};
use fedtvd_core::rules::{Step, Strategy, notation};
use fedtvd_core::train::{
    ClassWeights, Evaluation, Local, Pass, PassReport, Reach, Samples, Sgd, TrainFailure, Trainer, Values,
    client,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The clients' answers, in order of arrival.
pub(crate) type Answers = Vec<(ClientId, Result<Upload, ClientFailure>)>;

/// One client and its data.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) id: ClientId,
    pub(crate) rows: Vec<u32>,
    pub(crate) counts: Vec<u64>,
}

/// A run, its state, its clients, and their memories after each of their rounds.
pub(crate) struct Federation {
    pub(crate) run: Run,
    pub(crate) state: State,
    pub(crate) sites: Vec<Site>,
    pub(crate) memories: BTreeMap<(ClientId, u32), Memory>,
    /// The layout of the whole model.
    pub(crate) layout: Arc<Layout>,
    trainer: Box<dyn Trainer>,
}

/// A registered strategy or a composition.
pub(crate) fn strategy(label: &str) -> Strategy {
    notation::strategy(label, []).unwrap_or_else(|error| panic!("{label}: {error}"))
}

/// A run in which all clients take part in every round.
pub(crate) fn run(label: &str, local: Local) -> Run {
    Run {
        strategy: strategy(label),
        seed: 7,
        cohort_seed: 11,
        fraction: 1.0,
        extra: 0,
        stratum: None,
        local,
        class_weights: ClassWeights::Equal,
        quorum: 1,
        mode: Mode::Paper,
        screen: 6.0,
        largest_size: 1_000_000_000,
        fixed_roster: false,
    }
}

/// Plain SGD; an epoch is one step for clients with at most `batch` samples.
pub(crate) fn local(epochs: u32, batch: usize, lr: f64, momentum: f64) -> Local {
    let sgd = Sgd { lr, momentum, nesterov: false, weight_decay: 0.0 };
    Local { epochs, batch, optimizer: sgd.into(), ..Local::default() }
}

impl Federation {
    /// Enrols every site with the statistic that the strategy asks for.
    pub(crate) fn new(
        run: Run,
        start: Params,
        reference: Reference,
        sites: Vec<Site>,
        trainer: Box<dyn Trainer>,
    ) -> Self {
        let layout = Arc::clone(&start.layout);
        let mut state = State::new(&run, start, reference);
        for site in &sites {
            let profile = site.profile(&run.strategy, &state.reference);
            state.enrol(&run, profile).expect("sites are honest");
        }
        Self { run, state, sites, memories: BTreeMap::new(), layout, trainer }
    }

    /// Trains every job at its site, which knows only the strategy's label.
    pub(crate) fn answers(&mut self, jobs: &[Job]) -> Answers {
        jobs.iter().map(|job| (job.client, self.answer(job))).collect()
    }

    fn answer(&mut self, job: &Job) -> Result<Upload, ClientFailure> {
        let Site { id, rows, counts } =
            self.sites.iter().find(|site| site.id == job.client).expect("jobs go to enrolled sites");
        let client = ClientData { rows: rows.clone(), holdout: Vec::new(), counts: counts.clone() };
        let memory = job.accepted.and_then(|round| self.memories.get(&(*id, round)));
        let strategy = strategy(&job.offer.strategy);
        let (upload, memory) =
            client::train(&strategy, &self.layout, job, &client, memory, self.trainer.as_mut())?;
        self.memories.insert((*id, job.offer.round), memory);
        Ok(upload)
    }

    /// What travels of a client's model if it trains this branch's model by plain SGD on cross-entropy: as FedAvg's client, which
    /// knows nothing but the model.
    pub(crate) fn plainly_trained(&mut self, job: &Job, branch: u32) -> Vec<f32> {
        let parts = self.run.strategy.parts(&self.layout);
        let own = job.accepted.and_then(|round| self.memories.get(&(job.client, round))?.f32("own"));
        let own = own.or(job.offer.own.f32("own")).unwrap_or_default();
        let model = job.offer.model(branch).expect("its job brings it");
        let params = Arc::new(parts.join(model, own).into_owned());
        let (carried, own, others) = (Arc::default(), Arc::default(), Vec::new());
        let strategy = "fedavg".to_owned();
        let offer = Offer { strategy, params, others, carried, own, ..Offer::clone(&job.offer) };
        let kept = self.memories.clone();
        let trained = self.answer(&Job { accepted: None, offer: Arc::new(offer), ..job.clone() });
        self.memories = kept;
        parts.shared_of(trained.expect("plain training succeeds").params).values
    }

    /// Closes a round with these answers.
    pub(crate) fn close(&mut self, jobs: &[Job], answers: Answers) -> RoundRecord {
        let (next, record) =
            close(&self.run, &self.state, jobs, &InMemory::new(&self.run, &self.state, jobs, answers))
                .expect("memory can be read back");
        self.state = next;
        record
    }

    /// One whole round.
    pub(crate) fn round(&mut self) -> RoundRecord {
        let jobs = plan(&self.run, &self.state);
        let answers = self.answers(&jobs);
        self.close(&jobs, answers)
    }

    /// One round of these clients and no others.
    pub(crate) fn round_of(&mut self, clients: &[ClientId]) -> RoundRecord {
        let mut jobs = plan(&self.run, &self.state);
        jobs.retain(|job| clients.contains(&job.client));
        let answers = self.answers(&jobs);
        self.close(&jobs, answers)
    }

    /// The global model; that of the first client, if there are several.
    pub(crate) fn model(&self) -> &[f32] {
        let branch = self.sites.first().map_or(0, |site| self.state.branch_of(site.id));
        &self.state.model(branch).expect("clients are in branches that exist").values
    }

    /// A client's memory after its last accepted round.
    pub(crate) fn memory(&self, client: ClientId) -> Option<&Memory> {
        self.memories.get(&(client, *self.state.accepted.get(&client)?))
    }
}

/// The values of all models of a state, one after the other.
pub(crate) fn models(state: &State) -> Vec<f32> {
    state.models().flat_map(|model| model.values.iter().copied()).collect()
}

/// The sums of these weights of each branch's clients.
pub(crate) fn sums(record: &RoundRecord, weight: impl Fn(&ClientRecord) -> Option<f64>) -> Vec<f64> {
    let mut sums = BTreeMap::new();
    for client in &record.clients {
        *sums.entry(client.branch).or_insert(0.0) += weight(client).unwrap_or(0.0);
    }
    sums.into_values().collect()
}

impl Site {
    /// Its profile for a strategy.
    pub(crate) fn profile(&self, strategy: &Strategy, reference: &Reference) -> Profile {
        let statistic = strategy.asks().answer(&self.counts, reference);
        Profile::new(self.id, size(&self.counts), statistic)
    }
}

/// An upload of given values after this many steps of the job's optimiser; carried vectors do not change.
pub(crate) fn upload(job: &Job, values: &[f32], steps: u64) -> Upload {
    let mut reach = Reach::default();
    let mu = strategy(&job.offer.strategy).local.needs().mu;
    reach.advance(&job.offer.local.optimizer, mu, true, steps);
    let mut carried = Memory::default();
    for (name, array) in job.offer.carried.arrays() {
        let Array::F32(values) = array else { panic!("{name} is carried in f32") };
        carried.put(name, vec![0.0f32; values.len()]);
    }
    Upload {
        client: job.client,
        params: Params { layout: Arc::clone(&job.offer.params.layout), values: values.to_vec() },
        carried,
        report: Report {
            round: job.offer.round,
            steps,
            reach: reach.distance(),
            losses: [1.0, 1.0],
            remembers: true,
            branch: job.offer.branch,
        },
    }
}

/// Clients with quadratic losses: client k has row k, once per sample.
pub(crate) fn quadratics(
    run: Run,
    rows: Vec<(Vec<f64>, Vec<f64>)>,
    start: &[f64],
    counts: &[Vec<u64>],
) -> Federation {
    let site = |(k, counts): (usize, &Vec<u64>)| Site {
        id: k as u32,
        rows: vec![k as u32; size(counts) as usize],
        counts: counts.clone(),
    };
    let sites = counts.iter().enumerate().map(site).collect();
    let reference = Reference::uniform(counts[0].len());
    let trainer = Box::new(Exact::new(Quadratic { rows }));
    Federation::new(run, vector(start), reference, sites, trainer)
}

/// A model that is one vector.
pub(crate) fn vector(values: &[f64]) -> Params {
    let layout = Arc::new(Layout::vector(values.len()));
    Params { layout, values: values.iter().map(|&x| x as f32).collect() }
}

/// The layout of a softmax regression of three classes over two values, with a batch norm's buffers. The weights of the last
/// class count as a layer of their own, so that strategies can share the others alone.
pub(crate) fn buffered_layout() -> Arc<Layout> {
    let tensor = |layer, name: &str, shape: &[usize], kind, role| Tensor {
        name: name.to_owned(),
        shape: shape.to_vec(),
        layer,
        kind,
        role,
        start: 0,
    };
    Arc::new(Layout::from_tensors(vec![
        tensor(0, "bn.running_mean", &[2], LayerKind::BatchNorm, Role::RunningMean),
        tensor(0, "bn.running_var", &[2], LayerKind::BatchNorm, Role::RunningVariance),
        tensor(1, "first.weight", &[2, 2], LayerKind::Linear, Role::Weight),
        tensor(2, "last.weight", &[1, 2], LayerKind::Linear, Role::Weight),
    ]))
}

/// Softmax regression whose passes also update running statistics of the rows that they see.
struct Buffered(Exact<Regression>, Arc<Samples>);

impl Buffered {
    /// Means and biased variances of both columns, averaged over the batches of a pass.
    fn statistics(&self, rows: &[u32], pass: &Pass<'_>) -> Vec<f64> {
        let epochs = pass.first_epoch..pass.first_epoch + pass.epochs;
        let batches = epochs.flat_map(|epoch| {
            pass.order(epoch, rows).chunks(pass.batch).map(<[u32]>::to_vec).collect::<Vec<_>>()
        });
        let (mut sums, mut count) = (vec![0.0; 4], 0.0);
        for batch in batches {
            let mut moments = [[0.0; 2]; 2];
            for &row in &batch {
                let mut x = [0.0; 2];
                self.1.read(row, &mut x);
                for (moments, x) in moments.iter_mut().zip(x) {
                    moments[0] += f64::from(x) / batch.len() as f64;
                    moments[1] += f64::from(x) * f64::from(x) / batch.len() as f64;
                }
            }
            for (c, [mean, square]) in moments.into_iter().enumerate() {
                sums[c] += mean;
                sums[2 + c] += (square - mean * mean).max(0.0);
            }
            count += 1.0;
        }
        sums.into_iter().map(|sum| sum / count).collect()
    }
}

impl Trainer for Buffered {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        let mut report = self.0.pass(params, rows, pass)?;
        report.statistics = pass.norm.map(|_| self.statistics(rows, pass));
        let trainable = params.layout.trainable();
        if pass.frozen.is_some_and(|frozen| frozen.covers(&(trainable..params.values.len()))) {
            return Ok(report);
        }
        let (means, variances) = params.values[trainable..].split_at_mut(2);
        for &row in rows {
            let mut x = [0.0; 2];
            self.1.read(row, &mut x);
            for c in 0..2 {
                let gap = x[c] - means[c];
                means[c] += 0.1 * gap;
                variances[c] = 0.9 * variances[c] + 0.1 * gap * gap;
            }
        }
        Ok(report)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.0.gradient(params, rows, pass)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.0.evaluate(params, rows, offsets)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.0.logits(params, rows)
    }
}

/// Clients with these label counts who share a softmax regression of three classes, with buffers.
pub(crate) fn skewed(run: Run, counts: &[[u64; 3]]) -> Federation {
    let (mut labels, mut sites) = (Vec::new(), Vec::new());
    for (k, counts) in counts.iter().enumerate() {
        let first = labels.len() as u32;
        let own = counts.iter().enumerate().flat_map(|(c, &n)| std::iter::repeat_n(c as u32, n as usize));
        labels.extend(own);
        sites.push(Site {
            id: k as u32,
            rows: (first..labels.len() as u32).collect(),
            counts: counts.to_vec(),
        });
    }
    // Each class around its own corner, all rows different.
    let values = labels.iter().enumerate().flat_map(|(i, &label)| {
        let (noise, other) = ((i * 37 % 101) as f32 / 101.0, (i * 53 % 97) as f32 / 97.0);
        [label as f32 - 1.0 + noise, (label % 2) as f32 - other]
    });
    let values = Values::Floats(values.collect());
    let train = labels.len();
    let samples = Arc::new(Samples::new([1, 1, 2], 3, values, labels, train).expect("rows of two values"));
    let layout = buffered_layout();
    let values = vec![0.1, -0.2, 0.05, 0.3, -0.15, 0.2, 0.0, 0.0, 1.0, 1.0];
    let trainer = Box::new(Buffered(Exact::new(Regression(Arc::clone(&samples))), samples));
    Federation::new(run, Params { layout, values }, Reference::uniform(3), sites, trainer)
}

/// Label counts of five clients with very different sizes and labels; the first is balanced.
pub(crate) const SKEWED: [[u64; 3]; 5] = [[6, 6, 6], [1, 0, 9], [0, 20, 2], [4, 4, 1], [0, 0, 3]];

/// The bits of a model, so that values which merely print alike are not equal.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// The server's step from a model to a mean of which nothing else is known.
pub(crate) fn mean_step<'a>(base: &'a [f32], aggregate: &'a [f64]) -> Step<'a> {
    Step { base, aggregate, weights: &[1.0], norms: &[0.0], limit: f64::INFINITY, roster_change: &[] }
}
