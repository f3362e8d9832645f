//! The contenders: how each server is configured and started for a row, with a minimal fast configuration. Everything
//! else is the server's own default. No limit of requests per connection, no access log, one process or loop if the
//! model has one. Must not know who loads it. Start reading at [`Contender`].

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::beside::Outcome;

/// A server in one of its variants.
pub struct Contender {
    pub name: &'static str,
    /// How it is started.
    pub launch: fn(&Place<'_>) -> Outcome<Launch>,
    /// Seconds of load before it counts as warm.
    pub warm_up: u32,
    /// `JOUST_BENCH_EARLIER` serves it.
    pub is_earlier: bool,
}

/// Where and for what it is started.
pub struct Place<'a> {
    /// Our own program.
    pub joust: &'a Path,
    /// A folder of its own.
    pub dir: &'a Path,
    /// The site: `page.html`, and `cgi-bin/page`, an executable.
    pub site: &'a Path,
    /// The address to listen on.
    pub addr: SocketAddr,
}

/// A program and its arguments.
pub type Launch = Vec<OsString>;

const fn ours(name: &'static str, launch: fn(&Place<'_>) -> Outcome<Launch>) -> Contender {
    Contender { name, launch, warm_up: 1, is_earlier: false }
}

pub static REACTOR: Contender = ours("joust reactor", |place| joust(place, "reactor", &[]));
pub static URING: Contender = ours("joust uring", |place| joust(place, "uring", &["rings=1"]));
pub static PREFORK: Contender = ours("joust prefork", |place| joust(place, "prefork", PROCESSES));
pub static WORKER: Contender = ours("joust worker", |place| joust(place, "worker", THREADS));
pub static EVENT: Contender = ours("joust event", |place| joust(place, "event", SPARE_THREADS));
pub static POLLER: Contender = ours("joust poller", |place| joust(place, "poller", &[]));

/// For Apache's prefork and ours: processes for all connections, so that none is started or ended meanwhile.
const PROCESSES: &[&str] = &[
    "StartServers=120",
    "MinSpareServers=5",
    "MaxSpareServers=150",
    "ServerLimit=150",
    "MaxRequestWorkers=150",
];
/// The same for worker.
const THREADS: &[&str] = &[
    "StartServers=6",
    "ServerLimit=6",
    "ThreadsPerChild=25",
    "MaxRequestWorkers=150",
    "MinSpareThreads=25",
    "MaxSpareThreads=150",
];

/// The same for event. It closes kept-alive connections if all threads of a child are busy, so there are enough threads
/// that they never are, however the connections are spread.
const SPARE_THREADS: &[&str] = &[
    "ThreadLimit=101",
    "StartServers=2",
    "ServerLimit=2",
    "ThreadsPerChild=101",
    "MaxRequestWorkers=202",
    "MinSpareThreads=25",
    "MaxSpareThreads=202",
];

fn joust(place: &Place<'_>, model: &str, settings: &[&str]) -> Outcome<Launch> {
    let mut launch: Launch = vec![place.joust.into(), "serve".into(), place.site.into()];
    launch.extend(["--model", model, "--listen", &place.addr.to_string()].map(OsString::from));
    // Apache's default of 100 requests would make reconnecting part of the load.
    for setting in settings.iter().chain(&["MaxKeepAliveRequests=0"]) {
        launch.extend(["--set", setting].map(OsString::from));
    }
    launch.extend(["--cgi", "/cgi-bin/"].map(OsString::from));
    Ok(launch)
}

pub static NGINX: Contender = Contender {
    name: "nginx",
    launch: |place| {
        let dir = place.dir.display();
        let config = format!(
            "daemon off;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log warn;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n access_log off;\n sendfile on;\n tcp_nopush on;\n\
             keepalive_requests 4294967295;\n open_file_cache max=100;\n\
             types {{ text/html html; }}\n\
             client_body_temp_path {dir}/body;\n proxy_temp_path {dir}/proxy;\n\
             fastcgi_temp_path {dir}/fastcgi;\n uwsgi_temp_path {dir}/uwsgi;\n\
             scgi_temp_path {dir}/scgi;\n\
             server {{ listen {}; root {}; }}\n}}\n",
            place.addr,
            place.site.display(),
        );
        let file = written(place.dir.join("nginx.conf"), &config)?;
        let log = place.dir.join("error.log");
        Ok(vec!["nginx".into(), "-e".into(), log.into(), "-c".into(), file.into()])
    },
    warm_up: 1,
    is_earlier: false,
};

pub static LIGHTTPD: Contender = Contender {
    name: "lighttpd",
    launch: |place| {
        let config = format!(
            "server.document-root = \"{site}\"\nserver.bind = \"{}\"\nserver.port = {}\n\
             server.errorlog = \"{}/error.log\"\nserver.modules = ( \"mod_cgi\" )\n\
             server.max-connections = 4096\nserver.max-fds = 16384\n\
             # As many as it can count.\nserver.max-keep-alive-requests = 65535\n\
             mimetype.assign = ( \".html\" => \"text/html\" )\n\
             $HTTP[\"url\"] =~ \"^/cgi-bin/\" {{ cgi.assign = ( \"\" => \"\" ) }}\n",
            place.addr.ip(),
            place.addr.port(),
            place.dir.display(),
            site = place.site.display(),
        );
        let file = written(place.dir.join("lighttpd.conf"), &config)?;
        Ok(vec!["lighttpd".into(), "-D".into(), "-f".into(), file.into()])
    },
    warm_up: 1,
    is_earlier: false,
};

pub static H2O: Contender = Contender {
    name: "h2o",
    launch: |place| {
        let config = format!(
            "num-threads: 1\nmax-connections: 4096\npid-file: {dir}/h2o.pid\n\
             error-log: {dir}/error.log\nuser: {user}\nhosts:\n  default:\n    listen:\n\
             \x20     host: {}\n      port: {}\n    paths:\n      \"/\":\n        file.dir: {}\n",
            place.addr.ip(),
            place.addr.port(),
            place.site.display(),
            dir = place.dir.display(),
            user = if nix::unistd::geteuid().is_root() { "root" } else { "nobody" },
        );
        let file = written(place.dir.join("h2o.conf"), &config)?;
        Ok(vec!["h2o".into(), "-m".into(), "worker".into(), "-c".into(), file.into()])
    },
    warm_up: 1,
    is_earlier: false,
};

pub static APACHE_PREFORK: Contender =
    ours("Apache prefork", |place| apache(place, "prefork", PROCESSES));
pub static APACHE_WORKER: Contender =
    ours("Apache worker", |place| apache(place, "worker", THREADS));
pub static APACHE_EVENT: Contender =
    ours("Apache event", |place| apache(place, "event", SPARE_THREADS));

fn apache(place: &Place<'_>, mpm: &str, settings: &[&str]) -> Outcome<Launch> {
    const MODULES: &str = "/usr/lib/apache2/modules";
    let (dir, site) = (place.dir.display(), place.site.display());
    let sizes: String = settings.iter().map(|pair| pair.replace('=', " ") + "\n").collect();
    // If root starts it, it serves as www-data, like Debian's.
    let user =
        if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
    // mod_cgid is for threaded servers: a separate process forks.
    let cgi = format!(
        "LoadModule cgid_module {MODULES}/mod_cgid.so\nLoadModule alias_module {MODULES}/mod_alias.so\n\
         ScriptSock {dir}/cgid.sock\nScriptAlias /cgi-bin/ {site}/cgi-bin/\n"
    );
    let cgi = if mpm == "prefork" { "" } else { &cgi };
    let config = format!(
        "ServerRoot {dir}\nDefaultRuntimeDir {dir}\nPidFile {dir}/apache2.pid\nServerName localhost\n\
         Listen {}\nLoadModule mpm_{mpm}_module {MODULES}/mod_mpm_{mpm}.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         LoadModule mime_module {MODULES}/mod_mime.so\n{cgi}TypesConfig {dir}/mime.types\n{user}\
         ErrorLog {dir}/error.log\n{sizes}MaxKeepAliveRequests 0\nDocumentRoot {site}\n\
         <Directory />\n AllowOverride None\n Options FollowSymLinks ExecCGI\n</Directory>\n",
        place.addr,
    );
    written(place.dir.join("mime.types"), "text/html html\n")?;
    let file = written(place.dir.join("apache2.conf"), &config)?;
    let flags = ["-d".into(), place.dir.into(), "-f".into(), file.into()];
    Ok([&["apache2".into()], &flags[..], &["-D".into(), "FOREGROUND".into()]].concat())
}

/// With a JVM as Debian's package runs it; the JIT compilers need seconds of load.
pub static TOMCAT: Contender =
    Contender { name: "Tomcat 10", launch: tomcat, warm_up: 15, is_earlier: false };

fn tomcat(place: &Place<'_>) -> Outcome<Launch> {
    const HOME: &str = "/usr/share/tomcat10";
    let dir = place.dir;
    for folder in ["conf", "logs", "temp", "work", "webapps"] {
        fs::create_dir(dir.join(folder))?;
    }
    let server = format!(
        "<Server port=\"-1\"><Service name=\"Catalina\">\n\
         <Connector address=\"{}\" port=\"{}\" protocol=\"HTTP/1.1\" maxKeepAliveRequests=\"-1\"/>\n\
         <Engine name=\"Catalina\" defaultHost=\"localhost\">\n\
         <Host name=\"localhost\" appBase=\"webapps\"><Context path=\"\" docBase=\"{}\"/></Host>\n\
         </Engine></Service></Server>\n",
        place.addr.ip(),
        place.addr.port(),
        place.site.display(),
    );
    written(dir.join("conf/server.xml"), &server)?;
    fs::copy("/etc/tomcat10/web.xml", dir.join("conf/web.xml")).map_err(|error| {
        format!("no /etc/tomcat10/web.xml: {error}; scripts/peers.sh brings it")
    })?;
    let classes = format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar");
    let base = format!("-Dcatalina.base={}", dir.display());
    let words = ["java", "-Djava.awt.headless=true", "-cp", &classes, &base];
    let last =
        ["-Dcatalina.home=/usr/share/tomcat10", "org.apache.catalina.startup.Bootstrap", "start"];
    Ok(words.iter().chain(&last).map(OsString::from).collect())
}

fn written(path: PathBuf, text: &str) -> Outcome<PathBuf> {
    fs::write(&path, text)?;
    Ok(path)
}
