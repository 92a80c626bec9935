package conf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files in the order in which they are read: the later wins.
var files = []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"}

// maxFile is more than any sensible site file.
const maxFile = 16 << 20

// Load reads the configuration from a directory; "" means the one that
// HADOOP_CONF_DIR names. A directory needs at least core-site.xml.
func Load(dir string) (*Conf, error) {
	given := dir
	if dir == "" {
		dir = os.Getenv(EnvDir)
	}
	if dir == "" {
		return nil, fmt.Errorf("no Hadoop configuration: set %s to the directory that holds core-site.xml, hdfs-site.xml and yarn-site.xml (often /etc/hadoop/conf)", EnvDir)
	}
	named := EnvDir + "=" + dir
	if given != "" {
		named = dir
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("no Hadoop configuration at %s: %w; set %s to the directory that holds core-site.xml", named, err, EnvDir)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("no Hadoop configuration at %s: it is a file; set %s to the directory that holds core-site.xml", named, EnvDir)
	}
	c := New(nil)
	read := 0
	for _, name := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := c.add(path)
		if err != nil {
			return nil, fmt.Errorf("read the Hadoop configuration %s: %w", path, err)
		}
		read++
	}
	if read == 0 {
		return nil, fmt.Errorf("no Hadoop configuration at %s: none of %s is there; set %s to the directory that holds them",
			named, strings.Join(files, ", "), EnvDir)
	}
	if _, ok := c.raw("fs.defaultFS"); ok && c.Get("fs.defaultFS") == defaults["fs.defaultFS"] {
		c.warnings = append(c.warnings, fmt.Sprintf("%s: fs.defaultFS is not set, so there is no default file system", filepath.Join(dir, files[0])))
	}
	return c, nil
}

// add reads one file, and what it includes, over what is there.
func (c *Conf) add(path string) error {
	r := reader{left: maxFile}
	if err := r.file(path, 0); err != nil {
		return err
	}
	c.put(path, r.properties)
	return nil
}

// put sets the properties of a file over what is there.
func (c *Conf) put(path string, properties []property) {
	for _, p := range properties {
		name := current(p.Name)
		if old, ok := c.values[name]; ok && old.final {
			if old.text != p.Value {
				c.warnings = append(c.warnings, fmt.Sprintf("%s: %s is final in %s and stays as it is there", path, p.Name, old.from))
			}
			continue
		}
		c.values[name] = value{text: p.Value, final: p.Final, from: path}
	}
}

type property struct {
	Name, Value string
	Final       bool
}

// parse reads a site file: <configuration> of <property> with <name>, <value>
// and <final>, either as elements or as attributes.
func (r *reader) parse(b []byte, path string, depth int) error {
	d := xml.NewDecoder(bytes.NewReader(b))
	// Site files claim all sorts of encodings and are ASCII.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	root := false
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return notWellFormed(err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "configuration" {
			return fmt.Errorf("the outermost element is <%s>, not <configuration>", start.Name.Local)
		}
		root = true
		if err := r.elements(d, path, depth); err != nil {
			return err
		}
	}
	if !root {
		return errors.New("there is no <configuration> in it")
	}
	return nil
}

// elements reads the elements of a <configuration> or a <fallback> to its end.
func (r *reader) elements(d *xml.Decoder, path string, depth int) error {
	for open := 1; open > 0; {
		t, err := d.Token()
		if err != nil {
			return notWellFormed(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "configuration":
				open++
			case "property":
				p, ok, err := parseProperty(d, t)
				if err != nil {
					return err
				}
				if ok {
					r.properties = append(r.properties, p)
				}
			case "include":
				if err := r.include(d, t, path, depth); err != nil {
					return err
				}
			default:
				if err := d.Skip(); err != nil {
					return notWellFormed(err)
				}
			}
		case xml.EndElement:
			open--
		}
	}
	return nil
}

func parseProperty(d *xml.Decoder, start xml.StartElement) (property, bool, error) {
	var e struct {
		Name  *string `xml:"name"`
		Value *string `xml:"value"`
		Final string  `xml:"final"`
	}
	if err := d.DecodeElement(&e, &start); err != nil {
		return property{}, false, notWellFormed(err)
	}
	p := property{Name: attr(start, "name"), Value: attr(start, "value"), Final: attr(start, "final") == "true"}
	hasValue := p.Value != ""
	if e.Name != nil {
		p.Name = *e.Name
	}
	if e.Value != nil {
		p.Value, hasValue = *e.Value, true
	}
	p.Name = strings.TrimSpace(p.Name)
	p.Final = p.Final || strings.TrimSpace(e.Final) == "true"
	// Hadoop too passes over a property without a value.
	return p, p.Name != "" && hasValue, nil
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
