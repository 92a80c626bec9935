package web_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// partLinks returns the links of a page to other parts of the job's life, by their titles.
func partLinks(t *testing.T, text string) map[string]string {
	t.Helper()
	_, rest, _ := strings.Cut(text, `<p class="spans">`)
	line, _, _ := strings.Cut(rest, "</p>")
	links := map[string]string{}
	for _, m := range regexp.MustCompile(`<a href="([^"]*)"[^>]*>([^<]*)</a>`).FindAllStringSubmatch(line, -1) {
		links[m[2]], _, _ = strings.Cut(html.UnescapeString(m[1]), "#")
	}
	return links
}

// TestPartsOfALife: timeline and plots show any part of the job's life, as the address says it,
// and links move it and make it shorter and longer without a script.
func TestPartsOfALife(t *testing.T) {
	site := measured(2) // from 08:00 to 09:00, with a loss at 08:30
	const loss = "?from=2027-01-15T08:25:00Z&to=2027-01-15T08:35:00Z"
	for _, page := range []string{"/", "/plots"} {
		text := get(t, site, page+loss)
		for _, want := range []string{"2027-01-15 08:25:00 – 08:35:00", ">08:30</text>", `value="2027-01-15T08:25:00"`, fmt.Sprintf(`data-from="%d"`, time.Date(2027, 1, 15, 8, 25, 0, 0, time.UTC).UnixMilli())} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", page, want, text)
			}
		}
		// The loss is in the middle.
		if !strings.Contains(text, `#incident-worker-1-0"><svg x="50%"`) {
			t.Errorf("the loss is not in the middle of %s:\n%s", page, text)
		}
		links := partLinks(t, text)
		for title, want := range map[string]string{
			"earlier": "from=2027-01-15T08:20:00Z&to=2027-01-15T08:30:00Z", "later": "from=2027-01-15T08:30:00Z&to=2027-01-15T08:40:00Z",
			"closer": "from=2027-01-15T08:27:30Z&to=2027-01-15T08:32:30Z", "wider": "from=2027-01-15T08:20:00Z&to=2027-01-15T08:40:00Z", "all 1h 0m": "", "last 30m": "span=30m",
		} {
			_, query, _ := strings.Cut(links[title], "?")
			if got, _ := url.QueryUnescape(query); got != want {
				t.Errorf("%s: %q leads to %q, want %q", page, title, got, want)
			}
		}
		// Before it, nothing was lost.
		if text := get(t, site, page+"?from=2027-01-15T08:05:00Z&to=2027-01-15T08:25:00Z"); strings.Contains(text, "preempted") {
			t.Errorf("twenty minutes before the loss are drawn with it: %s", page)
		}
	}
	// What was selected otherwise stays.
	if links := partLinks(t, get(t, site, "/plots"+loss+"&task=worker-1&log=1")); !strings.Contains(links["earlier"], "log=1") || !strings.Contains(links["earlier"], "task=worker-1") {
		t.Errorf("the part's links lose the rest: %v", links)
	}
	if links := partLinks(t, get(t, site, "/"+loss+"&sort=-cpu&q=worker")); !strings.Contains(links["closer"], "sort=-cpu") || !strings.Contains(links["closer"], "q=worker") {
		t.Errorf("the part's links lose the rest: %v", links)
	}
	text := get(t, site, "/"+loss)
	for _, want := range []string{`<a href="?from=2027-01-15T08%3A25%3A00Z&amp;sort=task&amp;to=2027-01-15T08%3A35%3A00Z#tasks">`, `<input type="hidden" name="from" value="2027-01-15T08:25:00Z">`} {
		if !strings.Contains(text, want) {
			t.Errorf("what orders and selects tasks loses the part: %q is missing in:\n%s", want, text)
		}
	}

	// One end may be left out, moments are written in several ways, and what makes no sense, or is
	// outside, is all of it.
	for query, want := range map[string]string{
		"?from=2027-01-15T08:50": "2027-01-15 08:50:00 – 09:00:00", "?to=2027-01-15+08:10": "2027-01-15 08:00:00 – 08:10:00",
		"?from=2027-01-15T09:25:00%2B01:00&to=2027-01-15T08:35:00Z": "2027-01-15 08:25:00 – 08:35:00",
		"?from=2027-01-15T08:30:00Z&to=2027-01-15T08:30:01Z":        "2027-01-15 08:29:55 – 08:30:05",
		"?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z":        "", "?from=x&to=y": "", "?from=2027-01-15T08:40&to=2027-01-15T08:30": "",
		"?from=2028-01-01": "", "?to=2020-01-01": "", "?from=&to=": "",
	} {
		text := get(t, site, "/plots"+query)
		if want == "" && !strings.Contains(text, `aria-current="true">all 1h 0m`) || !strings.Contains(text, want) || want == "" && strings.Contains(text, "08:00:00 – ") {
			t.Errorf("%s does not show %q:\n%s", query, want, text)
		}
	}
	// The last minutes of a job go on with it.
	if links := partLinks(t, get(t, site, "/plots?from=2027-01-15T08:50")); links["later"] != "" || links["earlier"] == "" {
		t.Errorf("of the last ten minutes there are the links %v", links)
	}
}

// TestNumbersOfAPart: CSV and JSON have the part that the page shows.
func TestNumbersOfAPart(t *testing.T) {
	site := measured(2)
	const part = "from=2027-01-15T08:10:00Z&to=2027-01-15T08:20:00Z"
	from, to := time.Date(2027, 1, 15, 8, 10, 0, 0, time.UTC), time.Date(2027, 1, 15, 8, 20, 0, 0, time.UTC)
	page := get(t, site, "/plots?"+part)
	m := regexp.MustCompile(`class="csv" href="(samples\.csv\?[^"]*name=loss[^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the chart of the loss has no CSV:\n%s", page)
	}
	rows, err := csv.NewReader(strings.NewReader(get(t, site, "/"+html.UnescapeString(m[1])))).ReadAll()
	if err != nil || len(rows) < 50 || len(rows) > 130 {
		t.Fatalf("%v: CSV has %d rows of ten minutes", err, len(rows))
	}
	for _, row := range rows[1:] {
		if at, err := time.Parse(time.RFC3339, row[0]); err != nil || at.Before(from) || at.After(to) {
			t.Errorf("CSV has %v (%v)", row, err)
		}
	}
	m = regexp.MustCompile(`href="(samples\.json\?[^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page does not lead to its numbers:\n%s", page)
	}
	whole, cut := get(t, site, "/samples.json"), get(t, site, "/"+html.UnescapeString(m[1])+"&name=loss&name=step&name=complete_step")
	var got struct {
		Series []struct {
			Name     string
			Start    time.Time
			Interval int64 `json:"interval_ms"`
			Mean     []*float64
		}
	}
	// The loss is worker-0's, too.
	if err := json.Unmarshal([]byte(cut), &got); err != nil || len(got.Series) != 4 || len(cut) > len(whole)/3 {
		t.Fatalf("%v: %d bytes of %d: %s", err, len(cut), len(whole), cut)
	}
	for _, s := range got.Series {
		step := time.Duration(s.Interval) * time.Millisecond
		if end := s.Start.Add(time.Duration(len(s.Mean)) * step); s.Start.After(from) || s.Start.Before(from.Add(-step)) || end.Before(to) || end.After(to.Add(step)) {
			t.Errorf("%s is from %v to %v", s.Name, s.Start, end)
		}
	}
	var few struct{ Series []struct{ Mean []*float64 } }
	if err := json.Unmarshal([]byte(get(t, site, "/samples.json?name=step&points=10&"+part)), &few); err != nil || len(few.Series) != 1 || len(few.Series[0].Mean) < 5 || len(few.Series[0].Mean) > 10 {
		t.Errorf("%v: ten points of a part are %+v", err, few)
	}
}

// TestWhatHappenedInAPart: incidents and events are those of the part that is shown, however many
// there were since; and each incident leads to its time.
func TestWhatHappenedInAPart(t *testing.T) {
	job := lossyJob() // from 08:00 to 09:40, with a loss at 08:50
	for i := range 300 {
		at := job.StartedUnixMs + (65*time.Minute + time.Duration(i)*time.Second).Milliseconds()
		job.Events = append(job.Events, &proto.JobEvent{AtUnixMs: at, Kind: "note", Text: fmt.Sprintf("since then %d", i)})
		job.Incidents = append(job.Incidents, &proto.Incident{AtUnixMs: at, Task: "ps-1", Attempt: int32(i + 1), RecoveredUnixMs: at, Cause: "preempted"})
	}
	site := measured(1)
	site.Status = fixed{job}
	text := get(t, site, "/")
	if strings.Contains(text, `id="incident-ps-1-0"`) || strings.Contains(text, "attempt 0: node lost") {
		t.Fatalf("the page has the whole past:\n%s", text)
	}
	text = get(t, site, "/?from=2027-01-15T08:45:00Z&to=2027-01-15T08:55:00Z")
	for _, want := range []string{`id="incident-ps-1-0"`, "attempt 0: node lost", `<a href="./#incidents">all 301</a>`, `<a href="./#events">all of it</a>`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "since then") || strings.Contains(text, "preempted") {
		t.Errorf("it has what came later:\n%s", text)
	}
	m := regexp.MustCompile(`href="\./(\?from=[^"]*)#timeline"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the incident does not lead to its time:\n%s", text)
	}
	if text := get(t, site, "/"+html.UnescapeString(m[1])); !strings.Contains(text, "2027-01-15 08:40:00 – 09:02:00") || !strings.Contains(text, `id="incident-ps-1-0"`) {
		t.Errorf("the incident's time is:\n%s", text)
	}
	if text := get(t, site, "/?from=2027-01-15T08:01:00Z&to=2027-01-15T08:05:00Z"); !strings.Contains(text, "There was none in the part") {
		t.Errorf("where nothing was lost the page says:\n%s", text)
	}
}

// TestNumbersOfAPartThatIsNotThere: of a time before the job's life, or after it, there are no
// numbers, and not those of all of it.
func TestNumbersOfAPartThatIsNotThere(t *testing.T) {
	site := measured(1) // from 08:00 to 09:00
	for _, part := range []string{"from=2028-01-01", "to=2020-01-01", "from=2027-01-15T09:30:00Z&to=2027-01-15T09:35:00Z"} {
		var got struct{ Series []struct{ Mean []*float64 } }
		if err := json.Unmarshal([]byte(get(t, site, "/samples.json?name=loss&"+part)), &got); err != nil || len(got.Series) != 1 || len(got.Series[0].Mean) != 0 {
			t.Errorf("%s has the values %+v, %v", part, got, err)
		}
		if rows := strings.Count(get(t, site, "/samples.csv?name=loss&role=worker&"+part), "\n"); rows != 1 {
			t.Errorf("%s has %d rows", part, rows)
		}
	}
}
