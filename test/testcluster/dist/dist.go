// Package dist provides Hadoop's jars and a Java to run them with. The jars
// come from Maven Central, as pom.xml lists them, once per user and version.
package dist

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/test/testcluster/cached"
)

// defaultVersion is Hadoop's where the environment names no other; the only one for
// which all that the benchmarks compare with is fetched too.
const defaultVersion = "3.4.2"

// VersionEnv is the variable that names another version, as make's HADOOP does.
const VersionEnv = "HOLDFAST_TEST_HADOOP"

// Version is Hadoop's.
func Version() string {
	if v := os.Getenv(VersionEnv); v != "" {
		return v
	}
	return defaultVersion
}

//go:embed pom.xml
var pom []byte

// Dist is a Hadoop on this machine.
type Dist struct {
	Java    string // the java command
	Lib     string // the directory of jars
	Web     string // has the empty webapps that HDFS's daemons look for on the classpath
	Archive string // of loaded classes (archive.go), "" if there is none yet

	jars []string
}

// Get finds Java and the jars, and downloads the jars the first time.
func Get(ctx context.Context) (Dist, error) {
	java, err := findJava()
	if err != nil {
		return Dist{}, err
	}
	var options []string
	if Version() == defaultVersion {
		options = append(options, "-Pbench")
	}
	dir, err := fetch(ctx, "jars", pom, options...)
	if err != nil {
		return Dist{}, err
	}
	web, err := cached.Dir(ctx, "hadoop-web", makeWeb)
	if err != nil {
		return Dist{}, err
	}
	d := Dist{Java: java, Lib: lib(dir), Web: web}
	if d.jars, err = filepath.Glob(filepath.Join(d.Lib, "*.jar")); err != nil || len(d.jars) == 0 {
		return Dist{}, fmt.Errorf("no jars in %s (%v): remove %s and try again", d.Lib, err, dir)
	}
	if d.Archive, err = d.archive(ctx, nil); err != nil {
		return Dist{}, err
	}
	return d, nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java := filepath.Join(home, "bin", "java")
		if _, err := os.Stat(java); err == nil {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("no java on the PATH or in JAVA_HOME, which Hadoop's daemons need: install Java 17 (on Debian: apt-get install openjdk-17-jre-headless)")
	}
	return java, nil
}

// makeWeb makes what HttpServer2 refuses to start without: webapps/<name> on the
// classpath.
func makeWeb(_ context.Context, dir string) error {
	for _, name := range []string{"hdfs", "datanode", "secondary", "journal"} {
		if err := os.MkdirAll(filepath.Join(dir, "webapps", name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Args are java's arguments up to and with the class's name. The jars come
// first on the classpath, as an archive of classes demands; none of them has
// a file that a configuration directory has.
func (d Dist) Args(confDir, heap, class string, options ...string) []string {
	args := append([]string{"-Xmx" + heap}, d.common()...)
	if d.Archive != "" {
		args = append(args, "-XX:SharedArchiveFile="+d.Archive)
	}
	args = append(args, options...)
	return append(args, "-cp", strings.Join(append(slices.Clone(d.jars), d.Web, confDir), ":"), class)
}

func (d Dist) common() []string {
	var own []string
	if strings.HasPrefix(Version(), "3.1.") { // it asks the JDK's own class for the realm
		own = []string{"--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED"}
	}
	return append(own,
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		// Hadoop 3.4 reflects into java.lang.
		"--add-opens", "java.base/java.lang=ALL-UNNAMED",
		"-Djava.net.preferIPv4Stack=true",
		// A JVM that cannot use an archive says so on standard output.
		"-Xlog:disable", "-Xlog:all=error:stderr",
	)
}

// Jar is the path of a jar of Hadoop's own, by its artifact's name.
func (d Dist) Jar(artifact string) string {
	return filepath.Join(d.Lib, artifact+"-"+Version()+".jar")
}
