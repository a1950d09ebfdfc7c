package main

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func serviceProperties(r *run) {
	before := must(r.service.GetProperties(background, nil))
	var rules []*aztables.CorsRule
	if r.does("cors-without-headers") {
		rules = append(rules, &aztables.CorsRule{
			AllowedOrigins:  to.Ptr("www.xyz.com"),
			AllowedMethods:  to.Ptr("GET"),
			AllowedHeaders:  to.Ptr(""),
			ExposedHeaders:  to.Ptr(""),
			MaxAgeInSeconds: to.Ptr[int32](0),
		})
	}
	rules = append(rules, &aztables.CorsRule{
		AllowedOrigins:  to.Ptr("www.xyz.com,www.ab.com"),
		AllowedMethods:  to.Ptr("GET,PUT"),
		AllowedHeaders:  to.Ptr("x-ms-meta-xyz,x-ms-meta-foo"),
		ExposedHeaders:  to.Ptr("x-ms-meta-data*"),
		MaxAgeInSeconds: to.Ptr[int32](500),
	})
	days := func(days int32) *aztables.RetentionPolicy {
		return &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: &days}
	}
	logging := func(policy *aztables.RetentionPolicy) *aztables.Logging {
		return &aztables.Logging{
			Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(false), Version: to.Ptr("1.0"), RetentionPolicy: policy,
		}
	}
	minute := &aztables.Metrics{
		Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), Version: to.Ptr("1.0"), RetentionPolicy: days(7),
	}
	set := func(properties aztables.ServiceProperties) error {
		_, err := r.service.SetProperties(background, properties, nil)
		return err
	}
	defer clearProperties(r)
	ok(set(aztables.ServiceProperties{Logging: logging(days(7)), MinuteMetrics: minute, Cors: rules}))
	got := must(r.service.GetProperties(background, nil))
	equal(got.Logging, logging(days(7)), "logging")
	equal(got.MinuteMetrics, minute, "minute metrics")
	equal(got.HourMetrics, before.HourMetrics, "hour metrics")
	equal(len(got.Cors), len(rules), "CORS rules")
	equal(got.Cors[len(rules)-1], rules[len(rules)-1], "CORS rule")
	// The client omits an empty list of rules, so it changes nothing.
	if r.does("empty-properties") {
		ok(set(aztables.ServiceProperties{Cors: []*aztables.CorsRule{}}))
	}
	equal(len(must(r.service.GetProperties(background, nil)).Cors), len(rules), "CORS rules after an empty list")

	if r.does("properties-limits") {
		six := []*aztables.CorsRule{rules[0], rules[0], rules[0], rules[0], rules[0], rules[0]}
		for _, properties := range []aztables.ServiceProperties{{Logging: logging(days(366))}, {Cors: six}} {
			r.refused(set(properties), 400, "InvalidXmlDocument")
		}
		got := must(r.service.GetProperties(background, nil))
		equal(*got.Logging.RetentionPolicy.Days, 7, "days after the refusal")
		equal(len(got.Cors), len(rules), "CORS rules after the refusal")
	}
}

// The client has no means for it.
func clearProperties(r *run) {
	values := aztables.AccountSASSignatureValues{Services: "t", ResourceTypes: "s", Permissions: "w", ExpiryTime: hour()}
	token := must(values.Sign(r.credential))
	off := "<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
	body := "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>" +
		"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>" +
		"<MinuteMetrics>" + off + "</MinuteMetrics><Cors/></StorageServiceProperties>"
	url := fmt.Sprintf("%s/?restype=service&comp=properties&%s", r.endpoint, token.Encode())
	request := must(http.NewRequest(http.MethodPut, url, bytes.NewReader([]byte(body))))
	request.Header.Set("Content-Type", "application/xml")
	request.Header.Set("x-ms-version", "2019-02-02")
	response := must(http.DefaultClient.Do(request))
	ok(response.Body.Close())
	equal(response.StatusCode, 202, "status of the request that clears the properties")
	equal(must(r.service.GetProperties(background, nil)).Cors, nil, "CORS rules after they were cleared")
}

func statistics(r *run) {
	secondary := must(aztables.NewServiceClientWithSharedKey(r.endpoint+"-secondary", r.credential, options()))
	got := must(secondary.GetStatistics(background, nil)).GeoReplication
	equal(*got.Status, aztables.GeoReplicationStatusLive, "status")
	age := time.Since(*got.LastSyncTime)
	that(age.Abs() < 15*time.Minute, fmt.Sprintf("the last synchronization is off by %s", age))
}
