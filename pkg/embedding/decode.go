package embedding

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// DecodeConfig reads the embedding settings from JSON. A time is in Go form, such as 1m30s, or a number of milliseconds;
// case makes no difference in keys; one that is unknown is an error.
func DecodeConfig(raw []byte) (Config, error) {
	var c Config
	if err := strict(raw, &c); err != nil {
		return Config{}, Misconfigured("embedding: %s", err.Error())
	}
	return c, c.Check()
}

// strict reads one JSON value, and knows all its keys.
func strict(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s can't be of the type %s", cmp.Or(e.Field[strings.LastIndexByte(e.Field, '.')+1:], "it"), e.Value)
	}
	if err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows after its end")
	}
	return nil
}

// span is a time in settings.
type span time.Duration

func (s *span) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	if ms, err := strconv.ParseInt(text, 10, 40); err == nil { // 17 years
		*s = span(time.Duration(ms) * time.Millisecond)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s is no duration such as 1m30s (a number alone is milliseconds)", raw)
	}
	*s = span(d)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler: strictly, with times as settings have them.
func (c *Config) UnmarshalJSON(raw []byte) error {
	type plain Config
	x := struct {
		plain

		CooldownAfterUnhealthy span `json:"cooldownAfterUnhealthy"`
		CheckInterval          span `json:"checkInterval"`
	}{}
	if err := strict(raw, &x); err != nil {
		return err
	}
	*c = Config(x.plain)
	c.CooldownAfterUnhealthy, c.CheckInterval = time.Duration(x.CooldownAfterUnhealthy), time.Duration(x.CheckInterval)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler as that of Config does.
func (c *ProviderConfig) UnmarshalJSON(raw []byte) error {
	type plain ProviderConfig
	x := struct {
		plain

		TimeoutPerAttempt span `json:"timeoutPerAttempt"`
		SlowThreshold     span `json:"slowThreshold"`
	}{}
	if err := strict(raw, &x); err != nil {
		return err
	}
	*c = ProviderConfig(x.plain)
	c.TimeoutPerAttempt, c.SlowThreshold = time.Duration(x.TimeoutPerAttempt), time.Duration(x.SlowThreshold)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler as that of Config does.
func (h *Health) UnmarshalJSON(raw []byte) error {
	x := struct {
		Text     string `json:"text"`
		Interval span   `json:"interval"`
	}{}
	if err := strict(raw, &x); err != nil {
		return err
	}
	*h = Health{Text: x.Text, Interval: time.Duration(x.Interval)}
	return nil
}
