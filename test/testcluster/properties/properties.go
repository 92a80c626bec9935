// Package properties writes and changes directories of Hadoop's configuration files.
package properties

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Set is properties by name.
type Set map[string]string

// files tells which properties belong into which file; whatever has another
// prefix goes into core-site.xml.
var files = map[string][]string{
	"hdfs-site.xml":          {"dfs."},
	"capacity-scheduler.xml": {"yarn.scheduler.capacity."},
	"yarn-site.xml":          {"yarn."},
	"hadoop-policy.xml":      {"security."},
	"kms-site.xml":           {"hadoop.kms."},
	"kms-acls.xml":           {"hadoop.kms.acl.", "hadoop.kms.blacklist.", "default.key.acl.", "key.acl."},
}

const log4j = `log4j.rootLogger=%s,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%%d{HH:mm:ss,SSS} %%p %%c{2}: %%m%%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
`

// Write writes a configuration directory.
func (p Set) Write(dir, logLevel string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a configuration directory: %w", err)
	}
	sorted := map[string]*bytes.Buffer{}
	for _, file := range append(slices.Collect(maps.Keys(files)), "core-site.xml") {
		sorted[file] = bytes.NewBufferString("<configuration>\n")
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		sorted[FileOf(key)].WriteString(propertyLine(key, p[key]))
	}
	for file, b := range sorted {
		b.WriteString("</configuration>\n")
		if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the cluster's configuration: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, "log4j.properties"), fmt.Appendf(nil, log4j, logLevel), 0o644)
}

func propertyStart(key string) string { return "<property><name>" + escape(key) + "</name>" }

func propertyLine(key, value string) string {
	return propertyStart(key) + "<value>" + escape(value) + "</value></property>\n"
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

// FileOf returns the name of the file that a property belongs into.
func FileOf(key string) string {
	best, length := "core-site.xml", 0
	for file, prefixes := range files {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) && len(prefix) > length {
				best, length = file, len(prefix)
			}
		}
	}
	return best
}

// Amend changes properties in a configuration directory that write has made:
// each has a line of its own.
func (p Set) Amend(dir string) error {
	for key, value := range p {
		file := filepath.Join(dir, FileOf(key))
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
		lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, propertyStart(key))
		})
		if value != "" {
			lines = slices.Insert(lines, 1, propertyLine(key, value))
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644); err != nil {
			return fmt.Errorf("changing the cluster's configuration: %w", err)
		}
	}
	return nil
}
