package example;

import com.azure.core.util.BinaryData;
import com.azure.data.tables.TableServiceClient;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Starts {@code tablesdk-server --test} once, and resets it before each test. A test has a {@link TestKit} or a
 * {@link TableServiceClient} as a parameter. The tests share the server, so they must not run in parallel in one process.
 *
 * <p>The environment variable {@code TABLESDK_SERVER} is the path of the program; without it, {@code PATH} is searched.
 */
public final class TableServer implements BeforeEachCallback, ParameterResolver {
    private static TestKit kit;

    private static synchronized TestKit kit() {
        if (kit == null) {
            kit = start(Objects.requireNonNullElse(System.getenv("TABLESDK_SERVER"), "tablesdk-server"));
        }
        return kit;
    }

    private static TestKit start(String program) {
        try {
            // The server ends with its standard input, a pipe that is closed when this process ends.
            var command = new ProcessBuilder(program, "--test", "--exit-with-stdin");
            var process = command.redirectError(ProcessBuilder.Redirect.INHERIT).start();
            // The server prints this line when it accepts connections.
            var line = process.inputReader().readLine();
            if (line == null) {
                throw new IllegalStateException(program + " does not start");
            }
            Map<?, ?> started = BinaryData.fromString(line).toObject(Map.class);
            return new TestKit((String) started.get("connectionString"), URI.create(started.get("test") + "/"));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        kit().reset();
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        var type = parameter.getParameter().getType();
        return type == TestKit.class || type == TableServiceClient.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == TestKit.class ? kit() : kit().service();
    }
}
