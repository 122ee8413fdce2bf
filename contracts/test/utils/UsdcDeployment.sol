// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../../mocks/MockUSDC.sol";
import {UsdcSignatures} from "../../mocks/UsdcSignatures.sol";
import {Test} from "./Test.sol";

/// @title MockUSDC as it stands on a chain: behind its proxy, with its library where it is linked
abstract contract UsdcDeployment is Test {
    // keccak256("org.zeppelinos.proxy.implementation")
    bytes32 internal constant IMPLEMENTATION_SLOT =
        0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3;

    address internal constant PROXY_ADMIN = address(uint160(uint256(keccak256("proxy admin"))));

    function deployUsdc(string memory name, string memory version, address issuer)
        internal
        returns (MockUSDC)
    {
        vm.etch(address(UsdcSignatures), deployedCodeOf("UsdcSignatures"));
        bytes memory initialization = abi.encodeCall(MockUSDC.initialize, (name, "USDC", version, 6, issuer));
        return MockUSDC(
            deployCode("MockUSDCProxy", abi.encode(deployCode("MockUSDC", ""), PROXY_ADMIN, initialization))
        );
    }
}
