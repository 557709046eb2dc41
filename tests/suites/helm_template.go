// SPDX-License-Identifier: Apache-2.0
// helm_template CHART VALUES.json: the chart's templates, rendered by Go's text/template with sprig,
// which is what helm does. `--- FILE` is before each. GO111MODULE=off GOPATH=/usr/share/gocode, with
// golang-github-masterminds-sprig-dev and golang-gopkg-yaml.v3-dev.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func merge(into, from map[string]interface{}) {
	for key, value := range from {
		inner, isMap := value.(map[string]interface{})
		if known, ok := into[key].(map[string]interface{}); ok && isMap {
			merge(known, inner)
		} else {
			into[key] = value
		}
	}
}

func main() {
	var chart, values, more map[string]interface{}
	for name, into := range map[string]*map[string]interface{}{"Chart.yaml": &chart, "values.yaml": &values} {
		text, err := os.ReadFile(filepath.Join(os.Args[1], name))
		must(err)
		must(yaml.Unmarshal(text, into))
	}
	text, err := os.ReadFile(os.Args[2])
	must(err)
	must(json.Unmarshal(text, &more))
	merge(values, more)
	all := template.New("chart").Option("missingkey=error").Funcs(sprig.TxtFuncMap())
	all.Funcs(template.FuncMap{
		"toYaml": func(value interface{}) string {
			out, err := yaml.Marshal(value)
			must(err)
			return strings.TrimSuffix(string(out), "\n")
		},
		"include": func(name string, data interface{}) (string, error) {
			var out bytes.Buffer
			err := all.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	})
	files, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		_, err = all.New(filepath.Base(file)).Parse(string(text))
		must(err)
	}
	root := map[string]interface{}{"Values": values,
		"Chart":   map[string]interface{}{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": map[string]interface{}{"Name": "purlin", "Namespace": "purlin", "Service": "Helm"}}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		fmt.Printf("--- %s\n", name)
		must(all.ExecuteTemplate(os.Stdout, name, root))
	}
}
