package metrics_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/svcctl/svc/cli"
	"github.com/svcctl/svc/cli/command/commandtest"
)

const measured = `# HELP svc_request_duration_seconds Time of requests.
# TYPE svc_request_duration_seconds histogram
svc_request_duration_seconds_bucket{method="GET",namespace="",le="0.001"} 5
svc_request_duration_seconds_bucket{method="GET",namespace="",le="0.5"} %[1]d
svc_request_duration_seconds_bucket{method="GET",namespace="",le="+Inf"} %[1]d
svc_request_duration_seconds_sum{method="GET",namespace=""} 1
svc_request_duration_seconds_count{method="GET",namespace=""} %[1]d
# TYPE svc_requests_active gauge
svc_requests_active 0
# TYPE svc_runs_total counter
svc_runs_total{kind="job",status="failed"} 0
svc_runs_total{kind="job",status="succeeded"} 3
# TYPE svc_snapshot_bytes gauge
svc_snapshot_bytes{namespace="blog",profile="daily"} 2.097152e+06
# TYPE svc_snapshot_last_success_timestamp_seconds gauge
svc_snapshot_last_success_timestamp_seconds{namespace="blog",profile="daily"} 1.7698536e+09
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1048576
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0.5"} NaN
go_gc_duration_seconds_sum 0
go_gc_duration_seconds_count 0
`

func printed(t *testing.T, text string, args ...string) (out, errs string, exit int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			t.Errorf("%s is asked for", r.URL.Path)
		}
		_, _ = fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	st := commandtest.State(t)
	exit = cli.Run(t.Context(), st, append([]string{"metrics", "--server", s.URL}, args...))
	return fmt.Sprint(st.Out), fmt.Sprint(st.Err), exit
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf(measured, 10)
	for _, tt := range []struct{ name, args, want string }{
		{"all that says something", "", `
request
METRIC                         VALUE                                      LABELS
svc_request_duration_seconds   10, mean 100ms, p50 ≤ 1ms, p99 ≤ 500ms     method=GET
svc_requests_active            0

run
METRIC           VALUE   LABELS
svc_runs_total   3       kind=job status=succeeded

snapshot
METRIC                                        VALUE     LABELS
svc_snapshot_bytes                            2.0 MiB   namespace=blog profile=daily
svc_snapshot_last_success_timestamp_seconds   2h ago   namespace=blog profile=daily

process
METRIC                          VALUE     LABELS
process_resident_memory_bytes   1.0 MiB
`},
		{"words", "run bytes", `
run
METRIC           VALUE   LABELS
svc_runs_total   0       kind=job status=failed
svc_runs_total   3       kind=job status=succeeded

snapshot
METRIC               VALUE     LABELS
svc_snapshot_bytes   2.0 MiB   namespace=blog profile=daily

process
METRIC                          VALUE     LABELS
process_resident_memory_bytes   1.0 MiB
`},
		{"a library's", "go_", `
go
METRIC                   VALUE   LABELS
go_gc_duration_seconds   0
`},
		{"names", "--all -o name", `svc_request_duration_seconds
svc_requests_active
svc_runs_total
svc_snapshot_bytes
svc_snapshot_last_success_timestamp_seconds
process_resident_memory_bytes
go_gc_duration_seconds
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, errs, exit := printed(t, text, strings.Fields(tt.args)...)
			squeezed := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			if exit != 0 || errs != "" || squeezed(out) != squeezed(tt.want) {
				t.Errorf("exit %d, %s\ngot:\n%s\nwant:\n%s", exit, errs, out, tt.want)
			}
		})
	}
}

func TestMetricsJSON(t *testing.T) {
	t.Parallel()
	out, errs, exit := printed(t, fmt.Sprintf(measured, 10), "request", "-o", "json")
	var got struct {
		Groups []struct {
			Name    string
			Metrics []struct {
				Name, Type, Help string
				Series           []struct {
					Labels map[string]string
					Value  *float64
					Spread *struct {
						Count         int
						Sum, P50, P99 float64
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || exit != 0 {
		t.Fatalf("exit %d, %v: %s%s", exit, err, out, errs)
	}
	m := got.Groups[0].Metrics[0]
	if s := m.Series[0]; m.Type != "histogram" || m.Help != "Time of requests." || s.Labels["method"] != "GET" || s.Value != nil || s.Spread.Count != 10 || s.Spread.P50 != .001 || s.Spread.P99 != .5 {
		t.Errorf("got %s", out)
	}
}

func TestMetricsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, args, want string
		exit             int
	}{
		{"<html>", "", "api GET /metrics shows it", 1},
		{"svc_x 1\n", "nothing such", "metrics --all -o name lists all", 5},
		{"svc_x 1\n", "--every 1ms", "want 1s or more", 2},
	} {
		if out, errs, exit := printed(t, tt.text, strings.Fields(tt.args)...); exit != tt.exit || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit %d, want %d: %s%s, want %s", tt.args, exit, tt.exit, out, errs, tt.want)
		}
	}
}

// TestMetricsWatch shows the first time all, and then what has changed.
func TestMetricsWatch(t *testing.T) {
	t.Parallel()
	asked := atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := asked.Add(1); n < 3 {
			_, _ = fmt.Fprintf(w, measured, 10*n)
			return
		}
		w.WriteHeader(http.StatusForbidden) // ends the command
	}))
	t.Cleanup(s.Close)
	st := commandtest.State(t)
	exit := cli.Run(t.Context(), st, []string{"metrics", "request", "--watch", "--every", "1s", "--server", s.URL})
	_, second, _ := strings.Cut(st.Out.(*bytes.Buffer).String(), "svc_requests_active")
	if exit != 4 || !strings.Contains(second, "CHANGE") || !strings.Contains(second, "+10") || strings.Contains(second, "svc_requests_active") {
		t.Errorf("exit %d: %s", exit, second)
	}
}
