//! The data sets that have a name: what they are, where they come from, and what they must contain.

/// A file of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, without `.gz`.
    pub name: &'static str,
    /// Where it can be downloaded, if not in an archive.
    pub address: Option<&'static str>,
    /// Its length, uncompressed.
    pub length: u64,
    /// SHA-256 of its uncompressed bytes, so that it does not matter who compressed it.
    pub sha256: &'static str,
}

/// A tar.gz that holds the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its name.
    pub name: &'static str,
    /// Where it can be downloaded.
    pub address: &'static str,
}

/// A data set with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its licence and whom to cite.
    pub licence: &'static str,
    /// Channels, height, width.
    pub shape: [usize; 3],
    /// The classes' names; empty if they have only numbers.
    pub names: &'static [&'static str],
    /// Training rows of each class.
    pub train: &'static [u64],
    /// Test rows of each class.
    pub test: &'static [u64],
    /// Folders below a data folder in which its files may be, the official one first.
    pub folders: &'static [&'static str],
    /// Its files; none if it is embedded.
    pub parts: &'static [Part],
    /// The archive in which the files come.
    pub archive: Option<Archive>,
}

impl Entry {
    /// Mean and standard deviation that normalise the bytes of each channel; empty for a table.
    pub fn normal(&self) -> Vec<(f32, f32)> {
        match self.name {
            "cifar10" | "cifar100" => super::cifar::NORMAL.to_vec(),
            "heart" => Vec::new(),
            _ => vec![(0.0, 1.0); self.shape[0]],
        }
    }

    /// The classes' names, or their numbers.
    pub fn class_names(&self) -> Vec<String> {
        let number = |class: usize| class.to_string();
        (0..self.train.len())
            .map(|c| self.names.get(c).map_or_else(|| number(c), |&name| name.to_owned()))
            .collect()
    }
}

const FASHION: &[&str] =
    &["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"];
const CIFAR10: &[&str] =
    &["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The data set of that name.
pub fn named(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// Every data set that has a name.
pub const ALL: &[Entry] = &[
    Entry {
        name: "fmnist-mini",
        about: "a fifth of Fashion-MNIST, inside the program",
        licence: "MIT, Zalando SE",
        shape: [1, 28, 28],
        names: FASHION,
        train: &[1200; 10],
        test: &[200; 10],
        folders: &[],
        parts: &[],
        archive: None,
    },
    Entry {
        name: "fmnist",
        about: "Fashion-MNIST: grey images of clothing",
        licence: "MIT, Zalando SE; Xiao et al. 2017, arXiv 1708.07747",
        shape: [1, 28, 28],
        names: FASHION,
        train: &[6000; 10],
        test: &[1000; 10],
        folders: &["fashion-mnist", "FashionMNIST/raw", "fmnist"],
        parts: &[
            Part {
                name: "train-images-idx3-ubyte",
                address: Some(
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz",
                ),
                length: 47_040_016,
                sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            },
            Part {
                name: "train-labels-idx1-ubyte",
                address: Some(
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-labels-idx1-ubyte.gz",
                ),
                length: 60_008,
                sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            },
            Part {
                name: "t10k-images-idx3-ubyte",
                address: Some(
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-images-idx3-ubyte.gz",
                ),
                length: 7_840_016,
                sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            },
            Part {
                name: "t10k-labels-idx1-ubyte",
                address: Some(
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-labels-idx1-ubyte.gz",
                ),
                length: 10_008,
                sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            },
        ],
        archive: None,
    },
    Entry {
        name: "mnist",
        about: "MNIST: grey images of handwritten digits",
        licence: "CC BY-SA 3.0 (as commonly stated); LeCun et al. 1998",
        shape: [1, 28, 28],
        names: &[],
        train: &[5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        test: &[980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        folders: &["mnist", "MNIST/raw"],
        parts: &[
            Part {
                name: "train-images-idx3-ubyte",
                address: Some("https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz"),
                length: 47_040_016,
                sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            },
            Part {
                name: "train-labels-idx1-ubyte",
                address: Some("https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz"),
                length: 60_008,
                sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            },
            Part {
                name: "t10k-images-idx3-ubyte",
                address: Some("https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz"),
                length: 7_840_016,
                sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            },
            Part {
                name: "t10k-labels-idx1-ubyte",
                address: Some("https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz"),
                length: 10_008,
                sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            },
        ],
        archive: None,
    },
    Entry {
        name: "cifar10",
        about: "CIFAR-10: colour photographs of 10 kinds of things",
        licence: "none stated; Krizhevsky 2009",
        shape: [3, 32, 32],
        names: CIFAR10,
        train: &[5000; 10],
        test: &[1000; 10],
        folders: &["cifar-10-batches-bin"],
        parts: &[
            cifar10("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            cifar10("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            cifar10("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            cifar10("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            cifar10("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            cifar10("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        ],
        archive: Some(Archive {
            name: "cifar-10-binary.tar.gz",
            address: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        }),
    },
    Entry {
        name: "cifar100",
        about: "CIFAR-100: colour photographs of 100 kinds of things",
        licence: "none stated; Krizhevsky 2009",
        shape: [3, 32, 32],
        names: &[],
        train: &[500; 100],
        test: &[100; 100],
        folders: &["cifar-100-binary"],
        parts: &[
            Part {
                name: "train.bin",
                address: None,
                length: 50_000 * 3074,
                sha256: "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
            },
            Part {
                name: "test.bin",
                address: None,
                length: 10_000 * 3074,
                sha256: "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
            },
        ],
        archive: Some(Archive {
            name: "cifar-100-binary.tar.gz",
            address: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        }),
    },
    Entry {
        name: "heart",
        about: "UCI heart disease: patients of four hospitals, a natural split",
        licence: "CC BY 4.0, Janosi, Steinbrunn, Pfisterer and Detrano 1988 (UCI)",
        // 13 measurements: 6 numbers, 5 of them with an input for "missing", and 7 codes with 19 values.
        shape: [30, 1, 1],
        names: &["healthy", "narrowed vessel"],
        // 411 of the 920 patients are healthy; every fifth of each kind at each hospital is for testing.
        train: &[331, 409],
        test: &[80, 100],
        folders: &["heart-disease"],
        parts: &[
            Part {
                name: "processed.cleveland.data",
                address: Some(
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/processed.cleveland.data",
                ),
                length: 18_461,
                sha256: "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
            },
            Part {
                name: "processed.hungarian.data",
                address: Some(
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/processed.hungarian.data",
                ),
                length: 10_263,
                sha256: "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
            },
            Part {
                name: "processed.switzerland.data",
                address: Some(
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/processed.switzerland.data",
                ),
                length: 4_109,
                sha256: "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
            },
            Part {
                name: "processed.va.data",
                address: Some(
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/processed.va.data",
                ),
                length: 6_737,
                sha256: "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
            },
        ],
        archive: None,
    },
];

const fn cifar10(name: &'static str, sha256: &'static str) -> Part {
    Part { name, address: None, length: 10_000 * 3073, sha256 }
}
