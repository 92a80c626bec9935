package conf

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// mountTable begins the names of the properties of ViewFileSystem's mount tables
// (Constants.CONFIG_VIEWFS_PREFIX).
const mountTable = "fs.viewfs.mounttable."

// Resolve returns the hdfs:// URI that a viewfs:// URI stands for by the mount table of the
// client, and other URIs as they are. Of mount tables, it knows links, linkMergeSlash and
// linkFallback with one target each; a path that needs another kind is an error.
func (c *Conf) Resolve(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "viewfs" {
		return uri, nil // whoever opens it reports the error
	}
	table := u.Host
	if table == "" {
		table = "default"
		if fs, err := url.Parse(c.DefaultFS()); err == nil && fs.Scheme == "viewfs" && fs.Host != "" {
			table = fs.Host
		}
	}
	to, err := c.mounted(mountTable+table+".", path.Clean("/"+u.Path))
	if err != nil {
		return "", fmt.Errorf("%s: %w", uri, err)
	}
	return to, nil
}

// mounted returns where a path leads by the mount table whose properties begin with a prefix.
func (c *Conf) mounted(prefix, p string) (string, error) {
	if target := c.Get(prefix + "linkMergeSlash"); target != "" {
		return join(prefix+"linkMergeSlash", target, p)
	}
	var links []string
	for _, key := range c.Keys() {
		rest, ours := strings.CutPrefix(key, prefix)
		if !ours {
			continue
		}
		kind, from, _ := strings.Cut(rest, ".")
		// In linkNfly.OPTIONS./PATH, options stand before the path.
		from = from[max(0, strings.IndexByte(from, '/')):]
		from = path.Clean(from)
		switch inside := from == "/" || p == from || strings.HasPrefix(p, from+"/"); {
		case kind == "link" && inside:
			return join(key, c.Get(key), strings.TrimPrefix(p, from))
		case kind == "linkNfly" && inside, kind == "linkRegx":
			return "", fmt.Errorf("the mount table has %s, which is not read here: name the directory by its hdfs:// URI", key)
		case kind == "link":
			links = append(links, from)
		}
	}
	if target := c.Get(prefix + "linkFallback"); target != "" {
		return join(prefix+"linkFallback", target, p)
	}
	if len(links) == 0 {
		return "", fmt.Errorf("the configuration has no mount table for it (%slink./PATH): have core-site.xml name or include it, or name the directory by its hdfs:// URI", prefix)
	}
	slices.Sort(links)
	return "", fmt.Errorf("the mount table (%slink) leads nowhere from there: name a directory below %s, or one by its hdfs:// URI", prefix, strings.Join(links, ", "))
}

// join returns a path below the target of a link, which is a property's value.
func join(key, target, rest string) (string, error) {
	u, err := url.Parse(target)
	if strings.Contains(target, ",") {
		err = errors.New("it has several targets")
	}
	if err == nil && u.Scheme != "hdfs" {
		err = errors.New("it is not on HDFS")
	}
	if err != nil {
		return "", fmt.Errorf("%s leads to %s, which cannot be used: %w; name a directory on HDFS by its hdfs:// URI", key, target, err)
	}
	u.Path = path.Join("/", u.Path, rest)
	return u.String(), nil
}
