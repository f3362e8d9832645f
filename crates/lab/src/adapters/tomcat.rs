//! Apache Tomcat 10: a poller and a thread pool (the connector NIO, or NIO2), in a JVM of its own. Attributes and
//! defaults of the Connector follow its documentation (tomcat.apache.org/tomcat-10.1-doc/config/http.html), except
//! where a setting's description says otherwise. It runs with its own CATALINA_BASE: a server.xml with one connector
//! and one context (the site), and a web.xml with only the servlet for files. `java` is started directly, because
//! catalina.sh would add options of its own.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::values::{SettingKind, SettingSpec, Values};
use super::words::words;
use super::{
    Adapter, AdapterError, Answers, Found, Minimum, Parity, Rendered, Request, SEEN_ONLY, SERVER,
    Search, on_off, read, shown,
};

/// Tomcat.
pub(super) static ITEM: Adapter = Adapter {
    name: "tomcat",
    about: "Apache Tomcat 10: a poller and a pool of threads, in a JVM",
    package: "tomcat10 default-jre-headless",
    minimum: Some(Minimum { version: "10.0", lack: "jakarta servlets" }),
    find,
    settings: SETTINGS,
    agree,
    configure,
    parity,
    ways: &[&[], &[("protocol", "Nio2"), ("gc", "Serial"), ("-Xmx", "64m"), ("compression", "on")]],
    ..SERVER
};

/// Where Debian's tomcat10 has its programs and libraries.
const HOME: &str = "/usr/share/tomcat10";

/// The default of `cachingAllowed` and `cacheTtl`, for files of up to `cacheObjectMaxSize`
/// (tomcat.apache.org/tomcat-10.1-doc/config/resources.html).
const FILE_CACHE: &str = "on (content, 5 s); above 512 KiB: off";
/// The same with `useSendfile`: files larger than the servlet's `sendfileSize` are opened for each request
/// (`NioEndpoint.processSendfile`).
const FILE_CACHE_BESIDE_SENDFILE: &str = "on (content, 5 s); above 48 KiB: off";

const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: i32::MAX as u64 };
const MILLISECONDS: &str = "60000";

/// Attributes of the Connector, in this order in server.xml.
const CONNECTOR: &[&str] = &[
    "maxThreads",
    "minSpareThreads",
    "acceptCount",
    "maxConnections",
    "maxKeepAliveRequests",
    "keepAliveTimeout",
    "connectionTimeout",
    "tcpNoDelay",
    "useSendfile",
    "compression",
];

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "protocol",
        SettingKind::Choice(&["Nio", "Nio2"]),
        "Nio",
        "The connector: org.apache.coyote.http11.Http11NioProtocol or ...Nio2Protocol.",
    ),
    SettingSpec::new("maxThreads", POSITIVE, "200", "Most threads that work."),
    SettingSpec::new("minSpareThreads", POSITIVE, "10", "Threads that are always there."),
    SettingSpec::new(
        "acceptCount",
        POSITIVE,
        "511",
        "Connections the kernel holds until they are accepted. Tomcat's own is 100.",
    ),
    SettingSpec::new(
        "maxConnections",
        SettingKind::OrUnlimited,
        "(two for each connection, at least 8192)",
        "Maximum of open connections; further ones wait in the backlog.",
    ),
    SettingSpec::new(
        "maxKeepAliveRequests",
        SettingKind::OrUnlimited,
        "-1",
        "Requests on a connection; 1: no keep-alive. Tomcat's own 100 would make reconnects part of the load.",
    ),
    SettingSpec::new(
        "keepAliveTimeout",
        SettingKind::OrUnlimited,
        MILLISECONDS,
        "Milliseconds an idle connection is kept.",
    ),
    SettingSpec::new(
        "connectionTimeout",
        SettingKind::OrUnlimited,
        MILLISECONDS,
        "Milliseconds to wait for a request.",
    ),
    SettingSpec::new("tcpNoDelay", SettingKind::Switch, "on", "TCP_NODELAY."),
    SettingSpec::new(
        "useSendfile",
        SettingKind::Switch,
        "on",
        "Whether files above 48 KiB are sent by sendfile(2).",
    ),
    SettingSpec::new(
        "compression",
        SettingKind::Choice(&["off", "on", "force"]),
        "off",
        "Whether replies are compressed for clients that accept it.",
    ),
    SettingSpec::new(
        "AccessLogValve",
        SettingKind::Choice(&["off", "common", "combined"]),
        "off",
        "Access log, into the server's folder.",
    )
    .also(&["accesslog"]),
    SettingSpec::new("-Xms", SettingKind::Word, "(the JVM's)", "Heap at the start, as in 64m.")
        .also(&["Xms"]),
    SettingSpec::new("-Xmx", SettingKind::Word, "(the JVM's)", "Most heap, as in 512m.")
        .also(&["Xmx"]),
    SettingSpec::new(
        "gc",
        SettingKind::Choice(&["default", "Serial", "Parallel", "G1", "Z", "Shenandoah"]),
        "default",
        "Garbage collector (`-XX:+Use...GC`); by default the JVM chooses by CPUs and memory.",
    ),
    SettingSpec::new(
        "jvm",
        SettingKind::Line,
        "(none)",
        "Further options of the JVM, as on its command line.",
    ),
];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("java")?;
    let home = Path::new(HOME);
    let classes = ["lib/catalina.jar", "lib/tomcat-util.jar"].map(|jar| home.join(jar));
    if !home.join("bin/bootstrap.jar").exists() || !classes[0].exists() {
        return None;
    }
    let output = Command::new(&binary)
        .arg("-cp")
        .arg(format!("{}:{}", classes[0].display(), classes[1].display()))
        .arg("org.apache.catalina.util.ServerInfo")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let after = |name: &str| {
        let mut lines = text.lines();
        Some(lines.find_map(|line| line.strip_prefix(name))?.trim().to_owned())
    };
    let version = format!("{}, JVM {}", after("Server version:")?, after("JVM Version:")?);
    Some(Found { binary, version })
}

fn agree(values: &Values) -> Result<(), AdapterError> {
    let refused = |reason| Err(AdapterError::Disagree { server: ITEM.name, reason });
    if let Err(reason) = jvm_words(values) {
        return refused(format!("`jvm`: {reason}"));
    }
    let (threads, spare) =
        (values.number_or("maxThreads", 200), values.number_or("minSpareThreads", 10));
    if spare > threads {
        return refused(format!(
            "`minSpareThreads` {spare} is more than `maxThreads` {threads}: raise the one or lower the \
             other"
        ));
    }
    for name in ["-Xms", "-Xmx"] {
        let size = values.given(name).unwrap_or("1m");
        let digits = size.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
        if digits.parse::<u64>().is_err() || size.len() - digits.len() > 1 {
            return refused(format!("`{name}` is a size as in 512m or 2g, not `{size}`"));
        }
    }
    Ok(())
}

fn jvm_words(values: &Values) -> Result<Vec<String>, String> {
    values.given("jvm").map_or(Ok(Vec::new()), words)
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let dir = request.dir.display();
    let mut command: Vec<OsString> = vec![request.found.binary.clone().into()];
    for name in ["-Xms", "-Xmx"] {
        command.extend(values.given(name).map(|size| format!("{name}{size}").into()));
    }
    if values.text("gc") != "default" {
        command.push(format!("-XX:+Use{}GC", values.text("gc")).into());
    }
    let further = jvm_words(values).expect("the words were checked on reading");
    command.extend(further.into_iter().map(OsString::from));
    let options = [
        // Otherwise the JVM keeps a file below /tmp, which stays if the JVM is killed.
        "-XX:-UsePerfData".to_owned(),
        "-Djava.awt.headless=true".to_owned(),
        // Otherwise it listens on an IPv6 socket that accepts IPv4 too.
        "-Djava.net.preferIPv4Stack=true".to_owned(),
        // Otherwise it keeps running without a port and answers nobody.
        "-Dorg.apache.catalina.startup.EXIT_ON_INIT_FAILURE=true".to_owned(),
        format!("-Djava.io.tmpdir={dir}/temp"),
        format!("-Dcatalina.home={HOME}"),
        format!("-Dcatalina.base={dir}"),
        "-cp".to_owned(),
        format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar"),
        "org.apache.catalina.startup.Bootstrap".to_owned(),
        "start".to_owned(),
    ];
    command.extend(options.map(OsString::from));
    Rendered {
        files: vec![
            ("conf/server.xml".to_owned(), server_xml(request, values)),
            ("conf/web.xml".to_owned(), WEB_XML.to_owned()),
        ],
        dirs: ["conf", "logs", "temp", "webapps", "work"].map(str::to_owned).into(),
        ..Rendered::of(command)
    }
}

fn server_xml(request: &Request, values: &Values) -> String {
    let connections = (i64::from(request.connections) * 2).max(8192).to_string();
    let mut attributes = String::new();
    for name in CONNECTOR {
        let value = match *name {
            "maxConnections" => values.given(name).unwrap_or(&connections),
            "tcpNoDelay" | "useSendfile" if values.is_on(name) => "true",
            "tcpNoDelay" | "useSendfile" => "false",
            _ => values.text(name),
        };
        let _ = write!(attributes, "\n               {name}=\"{value}\"");
    }
    let valve = match values.text("AccessLogValve") {
        "off" => String::new(),
        pattern => format!(
            "\n        <Valve className=\"org.apache.catalina.valves.AccessLogValve\" directory=\"logs\"\n\
             \x20              prefix=\"access\" suffix=\".log\" rotatable=\"false\" pattern=\"{pattern}\"/>"
        ),
    };
    // port -1: no shutdown port. No scan for applications: the site is the only one.
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Server port=\"-1\">\n  <Service name=\"Catalina\">\n    \
         <Connector address=\"{}\" port=\"{}\"\n               \
         protocol=\"org.apache.coyote.http11.Http11{}Protocol\"{attributes}/>\n    \
         <Engine name=\"Catalina\" defaultHost=\"localhost\">\n      \
         <Host name=\"localhost\" appBase=\"webapps\" autoDeploy=\"false\" deployOnStartup=\"false\">{valve}\n        \
         <Context path=\"\" docBase=\"{}\">\n          \
         <JarScanner scanClassPath=\"false\" scanBootstrapClassPath=\"false\"/>\n        \
         </Context>\n      </Host>\n    </Engine>\n  </Service>\n</Server>\n",
        request.addr.ip(),
        request.addr.port(),
        values.text("protocol"),
        xml(&request.docroot.display().to_string()),
    )
}

/// Text escaped as the value of an attribute.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// The servlet for files, and the types that the other servers have.
const WEB_XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0" metadata-complete="true">
  <servlet>
    <servlet-name>default</servlet-name>
    <servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping>
    <servlet-name>default</servlet-name>
    <url-pattern>/</url-pattern>
  </servlet-mapping>
  <mime-mapping><extension>html</extension><mime-type>text/html</mime-type></mime-mapping>
  <mime-mapping><extension>txt</extension><mime-type>text/plain</mime-type></mime-mapping>
  <mime-mapping><extension>css</extension><mime-type>text/css</mime-type></mime-mapping>
  <welcome-file-list><welcome-file>index.html</welcome-file></welcome-file-list>
</web-app>
"#;

/// Its check (configtest) takes seconds and the port that the running server has, so it is not used. Answers come
/// from server.xml, and probes of the running server show what it does.
fn parity(rendered: &Rendered, _printed: &str) -> Parity {
    let source = rendered.files[0].1.as_str();
    let text = |name: &str| {
        let value =
            source.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next());
        value.unwrap_or("not set").to_owned()
    };
    let requests = match text("maxKeepAliveRequests").as_str() {
        "-1" => "unlimited".to_owned(),
        number => number.to_owned(),
    };
    let kept = !matches!(requests.as_str(), "0" | "1");
    let timeout = match text("keepAliveTimeout").parse::<u64>() {
        Ok(millis) => units::Nanos::from_millis(millis).to_string(),
        Err(_) => "unlimited".to_owned(),
    };
    let (sendfile, file_cache) = match text("useSendfile").as_str() {
        "true" => ("off; above 48 KiB: on", FILE_CACHE_BESIDE_SENDFILE),
        _ => ("off", FILE_CACHE),
    };
    let jvm: Vec<_> = rendered.command.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let jvm: Vec<_> = jvm.iter().filter(|word| word.starts_with("-X")).map(AsRef::as_ref).collect();
    Parity {
        answers: Answers {
            access_log: on_off(source.contains("AccessLogValve")).into(),
            backlog: read(text("acceptCount")),
            compression: on_off(text("compression") != "off").into(),
            etag: "on".into(),
            file_cache: file_cache.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: on_off(kept).into(),
            keep_alive_requests: requests.into(),
            keep_alive_timeout: (if kept { timeout } else { super::NOT_KEPT.to_owned() }).into(),
            sendfile: sendfile.into(),
            tcp_nodelay: on_off(text("tcpNoDelay") == "true").into(),
            tcp_nopush: "off".into(),
            tls: on_off(text("SSLEnabled") == "true").into(),
            workers: format!("{} to {} threads", text("minSpareThreads"), text("maxThreads"))
                .into(),
        },
        shown: shown([
            ("connections_max", text("maxConnections")),
            ("jvm_options", jvm.join(" ")),
            ("user", "whoever runs joust".to_owned()),
        ]),
    }
}
