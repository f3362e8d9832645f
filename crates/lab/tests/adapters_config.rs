//! The configurations that adapters render: complete, the same for the same request, and refused
//! with the way out where a setting is wrong. No server is needed for any of this.

use std::path::Path;

use joust_lab::adapters::{self, Account, Adapter, AdapterError, Found, Request};
use record::{SettingValue, Settings};

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let text = |value: &str| SettingValue::Text(value.to_owned());
    pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

/// The first file, or the command line where there is none.
fn rendered(name: &str, pairs: &[(&str, &str)]) -> String {
    let adapter = adapters::named(name).unwrap();
    let found = Found { binary: format!("/usr/sbin/{name}").into(), version: String::new() };
    let account =
        Account { user: "www-data".to_owned(), group: "www-data".to_owned(), uid: 33, gid: 33 };
    let request = Request {
        found: &found,
        dir: Path::new("/d"),
        addr: "127.0.0.1:8080".parse().unwrap(),
        docroot: Path::new("/site"),
        cpus: &[],
        connections: 64,
        account: Some(&account),
        settings: &settings(pairs),
    };
    let rendered = adapter.render(&request).unwrap();
    match rendered.files.first() {
        Some((_, text)) => text.clone(),
        None => rendered.command.iter().map(|word| format!("{}\n", word.display())).collect(),
    }
}

fn refused(name: &str, pairs: &[(&str, &str)]) -> AdapterError {
    adapters::named(name).unwrap().check(&settings(pairs)).unwrap_err()
}

#[test]
fn nginx_is_configured_completely() {
    insta::assert_snapshot!(rendered("nginx", &[]), @r#"
    daemon off;
    user www-data www-data;
    worker_processes 1;
    worker_rlimit_nofile 4096;
    pid /d/nginx.pid;
    error_log /d/error.log warn;

    events {
        worker_connections 512;
        multi_accept off;
        accept_mutex off;
    }

    http {
        types { text/html html htm; text/plain txt; text/css css; }
        default_type application/octet-stream;
        access_log off;
        client_body_temp_path /d/client_body;
        proxy_temp_path /d/proxy;
        fastcgi_temp_path /d/fastcgi;
        uwsgi_temp_path /d/uwsgi;
        scgi_temp_path /d/scgi;
        sendfile off;
        tcp_nopush off;
        tcp_nodelay on;
        aio off;
        keepalive_timeout 75;
        keepalive_requests 4294967295;
        open_file_cache off;
        etag on;
        gzip off;
        reset_timedout_connection off;

        server {
            listen 127.0.0.1:8080 backlog=511;
            root /site;
            index index.html;
        }
    }
    "#);
}

#[test]
fn lighttpd_is_configured_completely() {
    insta::assert_snapshot!(rendered("lighttpd", &[]), @r#"
    server.bind = "127.0.0.1"
    server.port = 8080
    server.document-root = "/site"
    index-file.names = ( "index.html" )
    mimetype.assign = ( ".html" => "text/html", ".txt" => "text/plain", ".css" => "text/css" )
    server.errorlog = "/d/error.log"
    server.pid-file = "/d/lighttpd.pid"
    server.upload-dirs = ( "/d/uploads" )
    server.username = "www-data"
    server.groupname = "www-data"
    server.max-worker = 0
    server.event-handler = "linux-sysepoll"
    server.network-backend = "sendfile"
    server.max-connections = 1024
    server.max-fds = 4096
    server.listen-backlog = 511
    server.max-keep-alive-requests = 65535
    server.max-keep-alive-idle = 5
    server.max-read-idle = 60
    server.max-write-idle = 360
    server.stat-cache-engine = "simple"
    static-file.etags = "enable"
    "#);
}

#[test]
fn apache_event_is_configured_completely() {
    insta::assert_snapshot!(rendered("apache", &[]), @r#"
    ServerRoot /d
    DefaultRuntimeDir /d/run
    PidFile /d/apache2.pid
    ServerName localhost
    Listen 127.0.0.1:8080
    LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
    LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
    LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
    LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
    TypesConfig /d/mime.types
    User www-data
    Group www-data
    ErrorLog /d/error.log
    LogLevel warn
    ServerLimit 16
    ThreadLimit 64
    ThreadsPerChild 25
    StartServers 6
    MinSpareThreads 75
    MaxSpareThreads 250
    MaxRequestWorkers 400
    AsyncRequestWorkerFactor 2
    MaxConnectionsPerChild 0
    ListenBacklog 511
    KeepAlive on
    KeepAliveTimeout 5
    MaxKeepAliveRequests 0
    TimeOut 60
    EnableSendfile off
    EnableMMAP on
    FileETag MTime Size
    DocumentRoot /site
    DirectoryIndex index.html
    <Directory />
        AllowOverride None
        Options FollowSymLinks
    </Directory>
    "#);
}

/// The settings of a published experiment of 2007, under the names it used.
#[test]
fn apache_prefork_takes_the_settings_of_its_time() {
    let prefork = rendered(
        "apache",
        &[
            ("mpm", "prefork"),
            ("StartServers", "5"),
            ("MinSpareServers", "5"),
            ("MaxSpareServers", "10"),
            ("MaxClients", "150"),
            ("MaxRequestsPerChild", "100"),
            ("CustomLog", "common"),
        ],
    );
    insta::assert_snapshot!(prefork, @r#"
    ServerRoot /d
    DefaultRuntimeDir /d/run
    PidFile /d/apache2.pid
    ServerName localhost
    Listen 127.0.0.1:8080
    LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
    LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
    LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
    LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
    TypesConfig /d/mime.types
    User www-data
    Group www-data
    ErrorLog /d/error.log
    LogLevel warn
    ServerLimit 256
    StartServers 5
    MinSpareServers 5
    MaxSpareServers 10
    MaxRequestWorkers 150
    MaxConnectionsPerChild 100
    ListenBacklog 511
    KeepAlive on
    KeepAliveTimeout 5
    MaxKeepAliveRequests 0
    TimeOut 60
    EnableSendfile off
    EnableMMAP on
    FileETag MTime Size
    CustomLog /d/access.log "%h %l %u %t \"%r\" %>s %b"
    DocumentRoot /site
    DirectoryIndex index.html
    <Directory />
        AllowOverride None
        Options FollowSymLinks
    </Directory>
    "#);
}

#[test]
fn joust_is_told_everything_that_decides_comparability() {
    let prefork = rendered("joust", &[("model", "prefork"), ("MaxConnectionsPerChild", "100")]);
    insta::assert_snapshot!(prefork, @r#"
    /usr/sbin/joust
    serve
    /site
    --listen
    127.0.0.1:8080
    --model
    prefork
    --access-log
    off
    --set
    KeepAlive=on
    --set
    KeepAliveTimeout=5
    --set
    MaxKeepAliveRequests=0
    --set
    ListenBacklog=511
    --set
    ServerLimit=256
    --set
    StartServers=69
    --set
    MinSpareServers=5
    --set
    MaxSpareServers=69
    --set
    MaxRequestWorkers=256
    --set
    MaxConnectionsPerChild=100
    "#);
}

#[test]
fn what_the_study_sets_wins_over_what_is_sized() {
    let joust = [("model", "prefork"), ("StartServers", "5"), ("MaxRequestWorkers", "150")];
    let text = rendered("joust", &joust);
    for set in ["StartServers=5\n", "MaxRequestWorkers=150\n"] {
        assert_eq!(text.matches(set).count(), 1, "{text}");
    }
    assert_eq!(text.matches("StartServers=").count(), 1, "{text}");
    let worker = [("mpm", "worker"), ("MaxRequestWorkers", "150"), ("ThreadsPerChild", "25")];
    let text = rendered("apache", &worker);
    assert!(text.contains("MaxRequestWorkers 150\n"), "{text}");
    assert!(text.contains("StartServers 6\n"), "no more children than the ceiling allows: {text}");
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_name() {
    let cases = [
        ("nginx", "worker_proceses", "`worker_processes`"),
        ("nginx", "KeepAliveTimeout", "`keepalive_timeout`"),
        ("apache", "MaxKeepaliveRequest", "`MaxKeepAliveRequests`"),
        ("lighttpd", "server.max-conections", "`server.max-connections`"),
        ("nginx", "zzzzzzzz", "there is: worker_processes"),
    ];
    for (server, typed, suggestion) in cases {
        let error = refused(server, &[(typed, "1")]).to_string();
        assert!(error.contains(typed) && error.contains(suggestion), "{error}");
        assert!(error.starts_with(server), "{error}");
    }
    let error = adapters::named("ngin").unwrap_err().to_string();
    assert_eq!(error, "no server is called `ngin`: did you mean `nginx`?");
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_and_cannot_end_a_directive() {
    let cases = [
        ("nginx", "worker_processes", "0", "a whole number from 1 to 512"),
        ("nginx", "sendfile", "maybe", "on or off"),
        ("apache", "mpm", "itk", "one of prefork, worker, event"),
        ("apache", "AsyncRequestWorkerFactor", "2\nUser root", "one word"),
        ("lighttpd", "server.max-worker", "-1", "a whole number from 0 to 65535"),
        ("joust", "model", "pool;x", "one word"),
    ];
    for (server, name, value, wanted) in cases {
        let error = refused(server, &[(name, value)]);
        assert!(matches!(error, AdapterError::BadValue { .. }), "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("mpm", "prefork"), ("ThreadsPerChild", "25")], "ThreadsPerChild"),
        (&[("mpm", "event"), ("MinSpareServers", "5")], "MinSpareServers"),
        (&[("mpm", "worker"), ("AsyncRequestWorkerFactor", "2")], "AsyncRequestWorkerFactor"),
        (&[("mpm", "worker"), ("MaxRequestWorkers", "90")], "multiple"),
        (&[("AsyncRequestWorkerFactor", "many")], "is a number"),
    ];
    for (pairs, word) in cases {
        let error = refused("apache", pairs);
        assert!(matches!(error, AdapterError::Disagree { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn flags_and_numbers_of_a_study_file_are_taken_as_they_are() {
    let nginx: &Adapter = adapters::named("nginx").unwrap();
    let settings: Settings = [
        ("sendfile".to_owned(), SettingValue::Flag(true)),
        ("worker_processes".to_owned(), SettingValue::Number(2)),
    ]
    .into();
    let values = nginx.check(&settings).unwrap();
    assert!(values.is_on("sendfile"));
    assert_eq!(values.text("worker_processes"), "2");
}

/// Every parity table has the same core, so that two contenders can be set side by side.
#[test]
fn every_parity_table_answers_the_same_questions() {
    let core = [
        "access_log",
        "backlog",
        "compression",
        "concurrency",
        "keep_alive",
        "keep_alive_requests",
        "keep_alive_timeout",
    ];
    for adapter in adapters::ALL {
        let found = Found { binary: "/x".into(), version: String::new() };
        let request = Request {
            found: &found,
            dir: Path::new("/d"),
            addr: "127.0.0.1:8080".parse().unwrap(),
            docroot: Path::new("/site"),
            cpus: &[],
            connections: 64,
            account: None,
            settings: &Settings::new(),
        };
        let parity = (adapter.parity)(&adapter.render(&request).unwrap(), "");
        for question in core {
            let answer = parity.get(question).map(String::as_str);
            assert!(answer.is_some_and(|text| !text.contains("not set")), "{question} {parity:?}");
        }
        assert_eq!(parity["access_log"], "off", "{}", adapter.name);
        assert_eq!(parity["backlog"], "511", "{}", adapter.name);
        assert_eq!(parity["keep_alive"], "on", "{}", adapter.name);
    }
}
