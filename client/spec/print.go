package spec

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast/proto"
	"holdfast/runtime"
)

// YAML writes the job that Spec has made of the draft, with what the draft left
// open, in the form that ReadDraft reads. Paths in it are absolute.
func (d *Draft) YAML(spec *proto.JobSpec) ([]byte, error) {
	var w mappingWriter
	w.add("name", spec.Name)
	w.add("queue", spec.Queue)
	w.add("framework", spec.Framework)
	w.add("local", spec.Local)
	var roles mappingWriter
	for _, r := range spec.Roles {
		var role mappingWriter
		role.put("count", r.Count)
		role.add("min", r.Min)
		role.add("memory", megabytesText(r.MemoryMb))
		role.add("memory-max", megabytesText(r.MemoryMaxMb))
		role.add("vcores", r.Vcores)
		role.add("gpus", r.Gpus)
		finish := time.Duration(r.FinishMs) * time.Millisecond
		if finish != runtime.UsualFinish(spec.Framework, r.Name) {
			role.put("finish", finish.String())
		}
		role.add("command", r.Command)
		roles.add(r.Name, role)
	}
	w.add("roles", roles)
	w.add("command", spec.Command)
	var env mappingWriter
	for _, k := range slices.Sorted(maps.Keys(spec.Env)) {
		env.put(k, spec.Env[k])
	}
	w.add("env", env)
	var checkpoints mappingWriter
	for _, c := range spec.Checkpoints {
		uri := c.Uri
		if !spec.Local && filepath.IsAbs(uri) {
			uri = "file://" + uri
		}
		if c.Format == "" && c.Marker == "" && c.QuietSeconds == 0 && !c.Share {
			checkpoints.add(c.Path, uri)
			continue
		}
		var directory mappingWriter
		directory.add("uri", uri)
		directory.add("format", c.Format)
		directory.add("marker", c.Marker)
		directory.add("quiet", durationText(time.Duration(c.QuietSeconds*float64(time.Second))))
		directory.add("share", c.Share)
		checkpoints.add(c.Path, directory)
	}
	w.add("checkpoints", checkpoints)
	var files, archives []string
	for _, in := range d.Inputs {
		text := in.Path + "#" + in.Name
		if in.Archive {
			archives = append(archives, text)
		} else {
			files = append(files, text)
		}
	}
	w.add("files", files)
	w.add("archives", archives)
	w.put("restarts", spec.Restarts)
	w.add("spares", spec.Spares)
	w.add("start-limit", durationText(time.Duration(spec.StartLimitMs)*time.Millisecond))
	w.put("restart-stalled", (time.Duration(spec.RestartStalledMs) * time.Millisecond).String())
	if ms := spec.StopGraceMs; ms != nil {
		w.put("stop-grace", (time.Duration(*ms) * time.Millisecond).String())
	}
	w.add("tf1", spec.Tf1)
	w.add("progress", d.Progress)
	w.add("keep-interpreter-waits", spec.KeepInterpreterWaits)
	w.add("no-warm", spec.Cold)
	w.add("principal", d.Principal)
	if d.Keytab != "" {
		keytab, err := filepath.Abs(d.Keytab)
		if err != nil {
			return nil, fmt.Errorf("find the keytab: %w", err)
		}
		w.add("keytab", keytab)
	}
	w.add("view-acl", spec.ViewAcl)
	w.add("modify-acl", spec.ModifyAcl)
	if w.err != nil {
		return nil, fmt.Errorf("write the job as YAML: %w", w.err)
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(w.node()); err != nil {
		return nil, fmt.Errorf("write the job as YAML: %w", err)
	}
	return text.Bytes(), nil
}

// mappingWriter makes a YAML mapping whose keys stay in their order.
type mappingWriter struct {
	content []*yaml.Node
	err     error // the first
}

func (w *mappingWriter) node() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: w.content}
}

// add is put, of a value that is not zero.
func (w *mappingWriter) add(key string, value any) {
	switch v := value.(type) {
	case mappingWriter:
		if w.err == nil {
			w.err = v.err
		}
		if len(v.content) > 0 {
			w.put(key, v.node())
		}
	case []string:
		if len(v) > 0 {
			w.put(key, v)
		}
	case string:
		if v != "" {
			w.put(key, v)
		}
	case bool:
		if v {
			w.put(key, v)
		}
	case int32:
		if v != 0 {
			w.put(key, v)
		}
	}
}

func (w *mappingWriter) put(key string, value any) {
	var name, node yaml.Node
	name.SetString(key)
	if err := node.Encode(value); err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", key, err)
	}
	if words, ok := value.([]string); ok && !strings.Contains(strings.Join(words, ""), "\n") {
		node.Style = yaml.FlowStyle
	}
	w.content = append(w.content, &name, &node)
}

func megabytesText(mb int64) string {
	if mb == 0 {
		return ""
	}
	return fmt.Sprintf("%dm", mb)
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
