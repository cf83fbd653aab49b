package planned

import "trajgen/registry"

const (
	homeToolset = "homeassistant"
	homeToken   = "HASS_TOKEN"
)

func home() []registry.Tool {
	return []registry.Tool{
		entry[struct {
			Domain string `json:"domain,omitempty" doc:"Only entities of one domain." example:"light"`
			Area   string `json:"area,omitempty" doc:"Only entities of one room."`
		}](homeToolset, "ha_list_entities", "List the devices and sensors of the home.", homeToken),
		entry[struct {
			EntityID string `json:"entity_id" doc:"Domain and name." example:"light.kitchen"`
		}](homeToolset, "ha_get_state", "The state of a device or sensor.", homeToken),
		entry[struct {
			Domain string `json:"domain,omitempty" doc:"Only services of one domain."`
		}](homeToolset, "ha_list_services", "List what can be done with devices.", homeToken),
		entry[struct {
			Domain   string `json:"domain" doc:"Domain of the service." example:"light"`
			Service  string `json:"service" doc:"Name of the service." example:"turn_on"`
			EntityID string `json:"entity_id,omitempty" doc:"Device to act on."`
			Data     string `json:"data,omitempty" doc:"Further parameters: a JSON object, as a string."`
		}](homeToolset, "ha_call_service", "Do something with a device.", homeToken),
	}
}
