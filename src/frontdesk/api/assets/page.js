// Starts the reference page. Nothing leaves this server: no validator, no fonts, no outside scripts.
window.onload = () => {
  SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#reference",
    deepLinking: true,
    validatorUrl: null,
    displayRequestDuration: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
  });
};
