package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ready waits until everything of a kind (nn, rm; empty: everything at all) has
// registered.
func (c *Cluster) ready(ctx context.Context, kind string) error {
	for _, d := range c.daemons {
		if !strings.HasPrefix(d.name, kind) {
			continue
		}
		if err := d.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the daemon serves: the NameNode, when the running
// DataNodes have registered with it and it is out of safe mode; the
// ResourceManager, when the running NodeManagers have or it stands by; the others, when they
// have registered since they were started.
func (d *Daemon) ready(ctx context.Context) error {
	var last string
	for {
		ok, detail := d.serves(ctx)
		if ok {
			return nil
		}
		if detail != "" {
			last = detail
		}
		if !d.Running() {
			return fmt.Errorf("%s ended while it started; the end of its log:\n%s", d.name, d.tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w (%s); the end of its log:\n%s", d.name, ctx.Err(), last, d.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *Daemon) serves(ctx context.Context) (ok bool, detail string) {
	c := d.cluster
	switch d.name[:2] {
	case "kd":
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.kdc.Addr)
		if err != nil {
			return false, err.Error()
		}
		return true, fmt.Sprint(conn.Close())
	case "nn":
		var nn struct {
			NumLiveDataNodes int
			FSState          string
		}
		place := portNNWeb
		if d.name == "nn1" {
			place = portNN1Web
		}
		if err := jmx(ctx, c.browser, c.reached(place), "Hadoop:service=NameNode,name=FSNamesystemState", &nn); err != nil {
			return false, err.Error()
		}
		want := c.running("dn")
		return nn.NumLiveDataNodes >= want && nn.FSState == "Operational",
			fmt.Sprintf("%d of %d DataNodes have registered, state %s", nn.NumLiveDataNodes, want, nn.FSState)
	case "rm":
		return c.rmServes(ctx, d.name)
	case "km":
		return d.kmsServes(ctx)
	case "dn":
		// BPServiceActor prints this after the block report that follows the registration.
		return strings.Contains(d.Log(), "Successfully sent block report"), "it has not sent its blocks to the NameNode"
	default:
		return strings.Contains(d.Log(), "Registered with ResourceManager as"), "it has not registered with the ResourceManager"
	}
}

// running counts the daemons of a kind that run.
func (c *Cluster) running(kind string) int {
	n := 0
	for _, d := range c.daemons {
		if strings.HasPrefix(d.name, kind) && d.Running() {
			n++
		}
	}
	return n
}

// Fsyncs is how often the DataNodes have called fsync, by their own count, which is up to 11 s old
// (MetricsSourceAdapter.java).
func (c *Cluster) Fsyncs(t TB) (total int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range c.opts.DataNodes {
		var dn struct{ FsyncCount int }
		if err := jmx(ctx, c.browser, c.reached(portDN(i)+1), "Hadoop:service=DataNode,name=DataNodeActivity-*", &dn); err != nil {
			t.Fatalf("the metrics of DataNode %d: %v", i, err)
		}
		total += dn.FsyncCount
	}
	return total
}

var web = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func jmx(ctx context.Context, b browser, addr, bean string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/jmx?qry="+url.QueryEscape(bean), nil)
	if err != nil {
		return err
	}
	resp, err := b.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	var answer struct{ Beans []json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", req.URL, err)
	}
	if len(answer.Beans) != 1 {
		return fmt.Errorf("%s: %d beans", req.URL, len(answer.Beans))
	}
	return json.Unmarshal(answer.Beans[0], into)
}
