//! The configurations that adapters render: complete, the same for the same request, and refused
//! with the way out where a setting is wrong. No server is needed for any of this.

use std::path::Path;

use doctor::parity::{Switch, is_unknown};
use joust_lab::adapters::{self, Account, Adapter, AdapterError, Found, Rendered, Request};
use record::{SettingValue, Settings};

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let text = |value: &str| SettingValue::Text(value.to_owned());
    pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

/// Settings as a study has them.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// The first file, or the command line where there is none.
fn rendered(name: &str, pairs: &[(&str, &str)]) -> String {
    match render(name, pairs).files.first() {
        Some((_, text)) => text.clone(),
        None => command_of(name, pairs),
    }
}

fn render(name: &str, pairs: &[(&str, &str)]) -> Rendered {
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
    adapter.render(&request).unwrap()
}

fn command_of(name: &str, pairs: &[(&str, &str)]) -> String {
    let command = render(name, pairs).command;
    command.iter().map(|word| format!("{}\n", word.display())).collect()
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
        open_file_cache_valid 60;
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
    FileCache=1
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
fn h2o_is_configured_completely() {
    insta::assert_snapshot!(rendered("h2o", &[("access-log", "combined")]), @r##"
    user: www-data
    error-log: "/d/error.log"
    num-threads: 1
    max-connections: 1024
    http1-request-timeout: 10
    http1-upgrade-to-http2: OFF
    tcp-fastopen: 0
    compress: OFF
    file.send-compressed: OFF
    file.etag: ON
    file.index: [ "index.html" ]
    file.dirlisting: OFF
    access-log: "/d/access.log"
    hosts:
      default:
        listen:
          host: 127.0.0.1
          port: 8080
        paths:
          "/":
            file.dir: "/site"
    "##);
}

#[test]
fn caddy_is_configured_completely() {
    insta::assert_snapshot!(rendered("caddy", &[("encode", "gzip"), ("log", "json")]), @r##"
    {
    	admin off
    	auto_https off
    	grace_period 1s
    	log {
    		output file /d/error.log
    		level WARN
    	}
    	servers {
    		protocols h1
    		timeouts {
    			read_header 1m
    			idle 5m
    		}
    	}
    }
    http://:8080 {
    	bind 127.0.0.1
    	root * /site
    	encode gzip
    	log {
    		output file /d/access.log
    		format json
    	}
    	file_server {
    		index index.html
    	}
    }
    "##);
}

#[test]
fn mini_httpd_is_configured_completely() {
    let all = [("logfile", "combined"), ("cgi", "on"), ("max_age", "60")];
    insta::assert_snapshot!(rendered("mini-httpd", &all), @r##"
    host=127.0.0.1
    port=8080
    dir=/site
    user=www-data
    charset=utf-8
    max_age=60
    logfile=/d/access.log
    cgipat=cgi-bin/*
    nochroot
    "##);
}

#[test]
fn tomcat_is_configured_completely() {
    insta::assert_snapshot!(rendered("tomcat", &[("AccessLogValve", "common")]), @r##"
    <?xml version="1.0" encoding="UTF-8"?>
    <Server port="-1">
      <Service name="Catalina">
        <Connector address="127.0.0.1" port="8080"
                   protocol="org.apache.coyote.http11.Http11NioProtocol"
                   maxThreads="200"
                   minSpareThreads="10"
                   acceptCount="511"
                   maxConnections="8192"
                   maxKeepAliveRequests="-1"
                   keepAliveTimeout="60000"
                   connectionTimeout="60000"
                   tcpNoDelay="true"
                   useSendfile="true"
                   compression="off"/>
        <Engine name="Catalina" defaultHost="localhost">
          <Host name="localhost" appBase="webapps" autoDeploy="false" deployOnStartup="false">
            <Valve className="org.apache.catalina.valves.AccessLogValve" directory="logs"
                   prefix="access" suffix=".log" rotatable="false" pattern="common"/>
            <Context path="" docBase="/site">
              <JarScanner scanClassPath="false" scanBootstrapClassPath="false"/>
            </Context>
          </Host>
        </Engine>
      </Service>
    </Server>
    "##);
}

#[test]
fn a_jvm_gets_its_options_before_the_class_that_it_runs() {
    let all = [("Xmx", "512m"), ("gc", "G1"), ("jvm", "-XX:+AlwaysPreTouch '-Da=b c'")];
    insta::assert_snapshot!(command_of("tomcat", &all), @r##"
    /usr/sbin/tomcat
    -Xmx512m
    -XX:+UseG1GC
    -XX:+AlwaysPreTouch
    -Da=b c
    -XX:-UsePerfData
    -Djava.awt.headless=true
    -Djava.net.preferIPv4Stack=true
    -Dorg.apache.catalina.startup.EXIT_ON_INIT_FAILURE=true
    -Djava.io.tmpdir=/d/temp
    -Dcatalina.home=/usr/share/tomcat10
    -Dcatalina.base=/d
    -cp
    /usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar
    org.apache.catalina.startup.Bootstrap
    start
    "##);
}

#[test]
fn a_command_gets_its_port_and_its_folders() {
    let all = [("command", "server --port={port} '{docroot}' --pid \"{dir}/a b\"")];
    insta::assert_snapshot!(command_of("command", &all), @r##"
    server
    --port=8080
    /site
    --pid
    /d/a b
    "##);
}

#[test]
fn programs_of_the_site_are_run_where_that_is_asked_for() {
    for (name, pairs, line) in [
        ("apache", &[("cgi", "on"), ("mpm", "prefork")][..], "LoadModule cgi_module"),
        ("apache", &[("cgi", "on")], "ScriptSock /d/run/cgid.sock"),
        ("lighttpd", &[("cgi", "on")], "server.modules = ( \"mod_cgi\" )"),
        ("mini-httpd", &[("cgi", "on")], "cgipat=cgi-bin/*"),
        ("joust", &[("cgi", "on")], "--cgi\n/cgi-bin/"),
    ] {
        assert!(rendered(name, pairs).contains(line), "{name}");
        assert!(!rendered(name, &pairs[1..]).contains(line), "{name}");
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_name() {
    let cases = [
        ("nginx", "worker_proceses", "`worker_processes`"),
        ("nginx", "KeepAliveTimeout", "`keepalive_timeout`"),
        ("apache", "MaxKeepaliveRequest", "`MaxKeepAliveRequests`"),
        ("lighttpd", "server.max-conections", "`server.max-connections`"),
        ("h2o", "num_threads", "`num-threads`"),
        ("caddy", "GOMAXPROC", "`GOMAXPROCS`"),
        ("tomcat", "maxThread", "`maxThreads`"),
        ("mini-httpd", "charsets", "`charset`"),
        ("command", "comand", "`command`"),
        ("url", "urll", "`url`"),
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
        ("tomcat", "maxKeepAliveRequests", "-2", "-1 for no limit"),
        ("tomcat", "jvm", "-Da=1\n-Db=2", "one line"),
        ("h2o", "compress", "br", "one of off, on, gzip"),
        ("command", "port", "65536", "from 1 to 65535"),
    ];
    for (server, name, value, wanted) in cases {
        let error = refused(server, &[(name, value)]);
        assert!(matches!(error, AdapterError::BadValue { .. }), "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let cases: &[(Pairs, &str)] = &[
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
fn settings_that_say_nothing_or_two_things_are_refused_with_the_way_out() {
    let cases: &[(&str, Pairs, &str)] = &[
        ("command", &[], "write settings.command"),
        ("command", &[("command", "server --port 80")], "put {port} into it"),
        ("command", &[("command", "server {port}"), ("port", "80")], "leave one of them out"),
        ("command", &[("command", "server '{port}")], "is not closed"),
        ("command", &[("command", "server {port}"), ("ready", "up")], "as in /up"),
        ("url", &[], "write settings.url"),
        ("url", &[("url", "https://a")], "plain HTTP"),
        ("tomcat", &[("maxThreads", "5")], "minSpareThreads"),
        ("tomcat", &[("-Xmx", "plenty")], "as in 512m"),
        ("tomcat", &[("jvm", "-Da='b")], "is not closed"),
        ("caddy", &[("GOGC", "never")], "percent or off"),
    ];
    for (server, pairs, word) in cases {
        let error = refused(server, pairs);
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

/// What these run is in their settings.
const GIVEN: [&str; 2] = ["command", "url"];

/// What of it a server's configuration or our knowledge of the server tells; `header_bytes` only a running one.
#[test]
fn every_adapter_knows_every_switch_and_those_of_which_nothing_is_known_say_why() {
    for adapter in adapters::ALL.iter().filter(|adapter| !GIVEN.contains(&adapter.name)) {
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
        let parity = (adapter.parity)(&adapter.render(&request).unwrap(), "").into_table();
        assert!(parity.contains_key("user"), "{}", adapter.name);
        for name in Switch::ALL.iter().map(|switch| switch.name()) {
            let answer = &parity[name];
            let known = !is_unknown(answer) && !answer.contains("not set");
            assert_eq!(known, name != "header_bytes", "{}: {name} is {answer}", adapter.name);
        }
        assert_eq!(parity["access_log"], "off", "{}", adapter.name);
        // Caddy, h2o and mini-httpd have no setting for it.
        let has_setting = !["caddy", "h2o", "mini-httpd"].contains(&adapter.name);
        assert!(!has_setting || parity["backlog"] == "511", "{}", adapter.name);
        let keeps = if adapter.name == "mini-httpd" { "off" } else { "on" };
        assert_eq!(parity["keep_alive"], keeps, "{}", adapter.name);
    }
}

#[test]
fn of_a_server_that_no_adapter_configures_every_switch_is_not_known_for_a_reason() {
    for (server, of_it) in [("command", "serve {port}"), ("url", "http://127.0.0.1:1")] {
        let parity = adapters::named(server).unwrap().parity;
        let table = parity(&render(server, &[(server, of_it)]), "").into_table();
        for name in Switch::ALL.iter().map(|switch| switch.name()) {
            assert!(table[name].starts_with("unknown: "), "{server}: {name}");
        }
    }
}

#[test]
fn what_each_server_keeps_of_a_file_is_what_its_settings_say() {
    let cases: &[(&str, Pairs<'_>, &str)] = &[
        ("joust", &[], "on (content, 1 s); above 64 KiB: on (descriptor, 1 s)"),
        (
            "joust",
            &[("FileCache", "500ms")],
            "on (content, 500ms); above 64 KiB: on (descriptor, 500ms)",
        ),
        ("joust", &[("FileCache", "off")], "off"),
        ("joust", &[("FileCache", "0s")], "off"),
        ("nginx", &[], "off"),
        ("nginx", &[("open_file_cache", "100")], "on (descriptor, 60 s)"),
        (
            "nginx",
            &[("open_file_cache", "100"), ("open_file_cache_valid", "1")],
            "on (descriptor, 1 s)",
        ),
        ("apache", &[], "off"),
        ("lighttpd", &[], "on (descriptor, 1 s)"),
        (
            "lighttpd",
            &[("server.stat-cache-engine", "disable")],
            "on (descriptor, looked up for each request)",
        ),
        ("caddy", &[], "off"),
        ("h2o", &[], "on (descriptor, a turn of the loop)"),
        ("tomcat", &[], "on (content, 5 s); above 48 KiB: off"),
        ("tomcat", &[("useSendfile", "off")], "on (content, 5 s); above 512 KiB: off"),
        ("mini-httpd", &[], "off"),
    ];
    for (name, pairs, kept) in cases {
        let parity = (adapters::named(name).unwrap().parity)(&render(name, pairs), "").into_table();
        assert_eq!(parity["file_cache"], *kept, "{name} {pairs:?}");
    }
}
