// Package metrics exports a job's status to Prometheus, in its text format or, to those who
// ask for it, in OpenMetrics'. Every scrape reads the status anew; nothing is kept between
// scrapes, and nothing runs.
package metrics

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast/am/status"
	"holdfast/proto"
)

// maxScrapes bounds the scrapes at the same time, as each copies the job's status.
const maxScrapes = 4

// Source returns what is exported. Its methods may be called concurrently.
type Source interface {
	Snapshot() (*proto.JobStatus, <-chan struct{})
	Totals() status.Totals
}

var _ Source = (*status.Store)(nil)

// collector implements prometheus.Collector.
type collector struct {
	source Source
	descs  []*prometheus.Desc // of families
}

// NewCollector returns a collector of the metrics of a job.
func NewCollector(job string, source Source) prometheus.Collector {
	c := &collector{source: source}
	for _, f := range families {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, prometheus.Labels{appLabel: job}))
	}
	return c
}

// Handler serves the metrics of a job.
func Handler(job string, source Source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(job, source))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	job, _ := c.source.Snapshot()
	s := &scrape{JobStatus: job, Totals: c.source.Totals(), now: time.Now()}
	for i, f := range families {
		if f.histogram != nil {
			h := f.histogram(s)
			buckets := map[float64]uint64{}
			for i, bound := range status.HistogramBounds {
				buckets[bound] = h.Buckets[i]
			}
			to <- prometheus.MustNewConstHistogram(c.descs[i], h.Count, h.Sum, buckets)
			continue
		}
		f.values(s, func(value float64, labels ...string) {
			for i, l := range labels {
				labels[i] = strings.ToValidUTF8(l, "\uFFFD")
			}
			to <- prometheus.MustNewConstMetric(c.descs[i], f.kind, value, labels...)
		})
	}
}
